#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace lockstep {

enum class EvidenceKind {
  kRun,     // a run directory of `lockstep train`
  kBundle,  // a reference bundle: what another implementation wrote about its run
  kModel,   // one model: a Hugging Face directory or a checkpoint
};
[[nodiscard]] std::string_view name_of(EvidenceKind kind);  // "run", "bundle", "model"

// One line of metrics.jsonl. A number that the line does not have, or has as null, is NaN.
struct CurvePoint {
  std::int64_t step = 0;
  double loss = 0;     // nats a target, as optimised
  double ce_loss = 0;  // its cross-entropy
  double grad_norm = 0;
  double lr = 0;
  double tokens_per_s = 0;
  double mfu = 0;
  double seconds = 0;
  std::int64_t tokens = 0;   // seen by the run up to this step; 0: not logged
  bool skipped = false;      // weights stayed as they were
  std::string batch_digest;  // empty: not logged
};

// The step of a model whose directory does not tell it.
inline constexpr std::int64_t kUnknownStep = -1;

// All that a run, a bundle or a model directory can show, found but not yet read: evaluations and
// weights are files named by step, to be opened when needed.
struct Evidence {
  std::string path;  // as given
  EvidenceKind kind = EvidenceKind::kModel;
  std::string name;       // run.name of a recipe, a bundle's name, else the directory's
  std::string producer;   // of a bundle, as it says; else empty
  std::string precision;  // that it was trained in; empty: not known
  std::optional<std::int64_t> tokens_per_step = std::nullopt;
  std::optional<std::int64_t> vocab_size = std::nullopt;  // real ids
  std::string recipe_path;                          // of a run or a checkpoint of one; else empty
  std::string tokenizer_path;                       // tokenizer.json; empty: none found
  std::vector<CurvePoint> curve;                    // by step, ascending; none of a model
  std::map<std::int64_t, std::string> evaluations;  // by step, the file
  std::map<std::int64_t, std::string> checkpoints;  // by step, a Hugging Face directory
  std::map<std::int64_t, std::string> logits;       // by step, a safetensors file
  std::vector<std::string> notes;                   // what was passed over, a line each
};

// Finds out what `path` is (bundle.json: a bundle; config.json: a model; recipe.toml: a run) and
// reads its curve. A torn last line of metrics.jsonl is passed over and noted; of a step that is
// logged twice the later line holds, and it is noted. Throws kInput for a path that is none of
// these and for a bundle of a newer version, kData naming file and line for a damaged one, and as
// read_recipe for a run's recipe.
[[nodiscard]] Evidence load_evidence(FileSystem& fs, const std::string& path);

// The curve of a metrics.jsonl alone, appending to `notes`. kInput when there is no such file.
[[nodiscard]] std::vector<CurvePoint> read_curve(FileSystem& fs, const std::string& path,
                                                 std::vector<std::string>& notes);

}  // namespace lockstep
