#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "eval/evaluation_file.h"
#include "io/file.h"
#include "report/evidence.h"
#include "report/html_series.h"

namespace lockstep {

// What the page charts of a run's steps: the columns of its StepSeries.
enum class RunColumn {
  kLoss,
  kGradNorm,
  kLearningRate,
  kTokensPerSecond,
  kMfu,
  kSeconds,
  kDataSeconds,
  kMemoryBytes,
};
inline constexpr std::size_t kRunColumns = 8;
// The key of the column in metrics.jsonl.
[[nodiscard]] const char* metrics_key(RunColumn column);

// A line of events.jsonl.
struct RunEvent {
  std::string event;
  std::string time;
  std::int64_t step = 0;
  std::string text;  // its other fields, "key: value; ..."
};

struct RunTotals {
  std::int64_t steps = 0;  // logged
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t tokens = 0;   // seen up to last_step
  std::int64_t skipped = 0;  // steps that left the weights as they were
  double last_loss = std::numeric_limits<double>::quiet_NaN();
  double seconds = 0;  // of all steps together
  double mfu_sum = 0;  // over the steps that log it
  std::int64_t mfu_steps = 0;
  double tokens_timed = 0;   // trained in timed_seconds
  double timed_seconds = 0;  // of the steps that log a speed
  double most_memory_bytes = 0;
};

// All that the page shows of one run, bundle or model.
struct RunPage {
  std::string name;
  std::string path;
  EvidenceKind kind = EvidenceKind::kModel;
  std::string producer;
  std::string precision;
  std::string recipe_toml;  // empty: there is none
  StepSeries series{kRunColumns, 2};
  RunTotals totals;
  std::vector<RunEvent> events;           // without "save"
  std::vector<std::int64_t> saves;        // steps that were saved
  std::vector<std::int64_t> checkpoints;  // steps whose checkpoints are there
  std::map<std::int64_t, Evaluation> evaluations;
  std::vector<std::string> notes;  // what was passed over, a line each
};

// Reads the files of a run that are read again and again while it trains: only what is new is read
// of metrics.jsonl. `fs` must outlive it. Not thread-safe.
class RunReader {
 public:
  // `evidence` as load_evidence found it; its curve is not used. At most `capacity` points a curve.
  RunReader(FileSystem& fs, const Evidence& evidence, std::size_t capacity);

  // Throws kData for a damaged line (a torn last one is left for later), kIo; call it again to try
  // again.
  void refresh();
  [[nodiscard]] const RunPage& page() const { return page_; }
  // Rises when logged steps were replaced: a resume that trains steps again. What was read of the
  // curve before is then void.
  [[nodiscard]] std::int64_t generation() const { return generation_; }

 private:
  void read_metrics();
  void take_line(std::string_view text, const std::string& where);
  void restart();
  [[nodiscard]] bool replaced(const InputFile& file) const;
  void read_events();
  void read_evaluations();

  FileSystem& fs_;
  RunPage page_;
  std::int64_t generation_ = 1;
  std::uint64_t offset_ = 0;  // of metrics.jsonl: what was read so far, whole lines
  std::uint64_t lines_ = 0;
  std::string last_line_;  // that ended there, newline included
  std::int64_t out_of_order_ = 0;
  std::string recipe_path_;
  std::uint64_t events_bytes_ = 0;
  std::map<std::int64_t, std::string> evaluation_files_;
  std::map<std::int64_t, std::uint64_t> evaluation_bytes_;
  std::map<std::int64_t, std::string> evaluation_notes_;
  std::vector<std::string> first_notes_;  // from the evidence
};

}  // namespace lockstep
