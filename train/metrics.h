#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/jsonl.h"
#include "train/tensorboard.h"

namespace lockstep {

// One line of metrics.jsonl.
struct StepRecord {
  std::int64_t step = 0;  // from 1
  std::int64_t epoch = 0;
  std::int64_t batch = 0;  // k of the step plan, from 0
  double loss = 0;         // cross-entropy plus weighted z-loss, as optimised
  double ce_loss = 0;
  double z_loss = 0;     // weighted
  double grad_norm = 0;  // before clipping
  double lr = 0;
  std::string batch_digest;
  std::int64_t tokens = 0;    // seen by the run up to and including this step
  std::int64_t targets = 0;   // of this step: the positions that the loss counts
  std::int64_t filtered = 0;  // instances masked out by the filter
  double tokens_per_s = 0;
  double mfu = 0;                 // window-exact, of the peak measured at start
  double seconds = 0;             // of the whole step
  double data_seconds = 0;        // of these, waiting for the loader
  std::int64_t memory_bytes = 0;  // resident memory of the process after the step; 0: not known
  std::string skipped;            // why the step was skipped; empty: it was taken
  bool passed_over = false;       // by train.steps_to_skip: no loss was computed
};

// `skipped` is a boolean in JSON, its reason in skip_reason; loss_bits, grad_norm_bits: the
// hexadecimal of the exact doubles.
[[nodiscard]] std::string to_json_line(const StepRecord& record);

// What of a logged step must come out the same when it is trained again.
struct LoggedStep {
  std::string loss_bits;
  std::string grad_norm_bits;
  std::string batch_digest;
  double loss = 0;
};
// Throws kData naming `what` for a line that is no step record; nothing for a passed-over step.
[[nodiscard]] std::optional<std::pair<std::int64_t, LoggedStep>> parse_logged_step(
    std::string_view line, std::string_view what);

// The files that a run's metrics go to: metrics.jsonl, and metrics.csv and TensorBoard events when
// asked for. Opening at `last_step` (the step of the checkpoint that the run goes on from) keeps
// the lines up to it, moves later ones to metrics.superseded-N.jsonl, and remembers what they said.
class MetricsLog {
 public:
  struct Options {
    bool tensorboard = true;
    bool csv = false;
  };
  MetricsLog(FileSystem& fs, const std::string& run_directory, std::int64_t last_step,
             const Options& options);

  void add(const StepRecord& record);
  // What an earlier process logged for steps after last_step.
  [[nodiscard]] const std::map<std::int64_t, LoggedStep>& superseded() const { return superseded_; }

 private:
  void supersede(FileSystem& fs, const std::string& run_directory, std::int64_t last_step);
  void open_csv(FileSystem& fs, const std::string& run_directory, std::int64_t last_step);

  std::map<std::int64_t, LoggedStep> superseded_;
  std::unique_ptr<JsonlWriter> jsonl_;
  std::unique_ptr<OutputFile> csv_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;
};

// Compares re-trained steps with what was logged before.
class ReplayCheck {
 public:
  explicit ReplayCheck(const std::map<std::int64_t, LoggedStep>& logged) : logged_(logged) {}

  void add(const StepRecord& record);
  [[nodiscard]] std::int64_t compared() const { return compared_; }
  [[nodiscard]] std::int64_t different() const { return different_; }
  [[nodiscard]] std::int64_t first_step() const { return first_; }
  [[nodiscard]] std::int64_t last_step() const { return last_; }
  [[nodiscard]] double max_loss_difference() const { return max_difference_; }
  // True after the last logged step was compared.
  [[nodiscard]] bool complete() const {
    return !logged_.empty() && last_ == logged_.rbegin()->first;
  }
  // "steps 41 to 47 were trained again: all 7 equal what was logged (difference 0.000, on bits)".
  [[nodiscard]] std::string text() const;

 private:
  const std::map<std::int64_t, LoggedStep>& logged_;
  std::int64_t compared_ = 0;
  std::int64_t different_ = 0;
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  std::int64_t first_different_ = 0;
  double max_difference_ = 0;
};

// Resident memory of this process now; 0 where the system does not say.
[[nodiscard]] std::int64_t resident_bytes();

// 16 hexadecimal digits: the bits of a double.
[[nodiscard]] std::string double_bits(double value);

}  // namespace lockstep
