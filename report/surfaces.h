#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "eval/evaluation_file.h"
#include "report/statistics.h"
#include "report/tolerances.h"

namespace lockstep {

// One surface at one checkpoint: how far A is from B and what follows from it.
struct SurfaceResult {
  std::string surface;  // as report/tolerances.h names it
  bool detail = false;  // one task, one domain: part of another surface
  Estimate estimate;    // A less B (losses in nats a token, accuracies); of token_kl the mean KL
  double tolerance = 0;
  Verdict verdict = Verdict::kNotEnoughData;
  std::string reason;  // why there is not enough data; else empty
  double a = 0;        // the sides' own losses or accuracies; NaN for token_kl
  double b = 0;
  std::string label;                           // of c4_loss: which domain that is
  std::optional<KlSurface> kl = std::nullopt;  // of token_kl, without its documents
};

struct SurfaceOptions {
  std::string c4_label;  // empty: the first label that contains "c4", else the first of all
  Tolerances tolerances;
  BootstrapOptions bootstrap;
};

// Held-out losses of two evaluations: c4_loss, then perplexity (all domains) and perplexity/LABEL
// by name. Documents are paired by (label, document) and count when both sides scored the same
// number of targets; what does not pair is told in `notes`. Either may be null: that surface then
// has no data. kData for a document that is listed twice.
[[nodiscard]] std::vector<SurfaceResult> compare_heldout(const HeldoutSurface* a,
                                                         const HeldoutSurface* b,
                                                         const SurfaceOptions& options,
                                                         ThreadPool& pool,
                                                         std::vector<std::string>& notes);

// Answers by plain likelihood (acc), paired by (subtask, doc): tasks, the mean over the tasks that
// both sides answered, and tasks/NAME by name. A task counts when both sides gave it the same
// number of examples. Otherwise as compare_heldout.
[[nodiscard]] std::vector<SurfaceResult> compare_tasks(const std::vector<TaskSurface>* a,
                                                       const std::vector<TaskSurface>* b,
                                                       const SurfaceOptions& options,
                                                       std::vector<std::string>& notes);

// Mean token KL and its interval over documents. `tolerance` is that of this checkpoint.
[[nodiscard]] SurfaceResult judge_kl(const KlSurface& kl, double tolerance,
                                     const SurfaceOptions& options, ThreadPool& pool);

// A surface that cannot be judged.
[[nodiscard]] SurfaceResult no_data(const std::string& surface, double tolerance,
                                    const std::string& reason);

}  // namespace lockstep
