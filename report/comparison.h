#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/curve_difference.h"
#include "report/evidence.h"
#include "report/surfaces.h"

namespace lockstep {

// A checkpoint that both sides have. The steps differ only where one side is a single model.
struct CommonStep {
  std::int64_t step = 0;  // by which it is known; kUnknownStep when neither side tells
  std::int64_t step_a = 0;
  std::int64_t step_b = 0;
};

// Token KL that no evaluation file holds: measured, or the reason why it cannot be.
struct MeasuredKl {
  std::optional<KlSurface> kl = std::nullopt;
  std::string reason;
};
// KL(reference || model) of the weights (or stored logits) that two sides have at their steps.
using KlSource = std::function<MeasuredKl(const Evidence& model, std::int64_t model_step,
                                          const Evidence& reference, std::int64_t reference_step)>;

struct CompareOptions {
  SurfaceOptions surfaces;
  std::int64_t window = kDefaultWindow;
  KlSource measure_kl;  // may be empty
};

// All surfaces at one common checkpoint: c4_loss, tasks and each task, perplexity and each domain,
// token_kl.
struct StepComparison {
  CommonStep at;
  std::vector<SurfaceResult> surfaces;
};

// Another side against B, for scale. At a step at which it has nothing it is not listed.
struct Companion {
  std::string path;
  std::string name;
  std::vector<StepComparison> steps;

  // Of a surface at a common checkpoint's step; null when it has none.
  [[nodiscard]] const SurfaceResult* find(std::int64_t step, const std::string& surface) const;
};

struct Comparison {
  Evidence a;
  Evidence b;
  CurveDifference training_loss;
  std::vector<StepComparison> steps;  // ascending
  std::optional<Companion> floor = std::nullopt;
  std::optional<Companion> context = std::nullopt;
  std::map<std::string, double> tolerances;
  // Of the last common checkpoint: differs when any surface, task or domain differs there, else
  // reproduced when c4_loss, tasks, perplexity and token_kl are, else not enough data.
  Verdict verdict = Verdict::kNotEnoughData;
  std::vector<std::string> notes;  // what could not be compared or looks odd, a line each
};

// Compares A with its reference B: training losses, then the surfaces at every checkpoint of which
// both have an evaluation (if there is none: weights). An evaluation's own token KL counts when its
// reference is B; else measure_kl is asked. `floor`, another side against B, sets the tolerance of
// token_kl where none was given: twice its mean KL at that checkpoint. `context` decides nothing.
// Throws as read_evaluation and as measure_kl.
[[nodiscard]] Comparison compare_evidence(FileSystem& fs, const Evidence& a, const Evidence& b,
                                          const Evidence* floor, const Evidence* context,
                                          const CompareOptions& options, ThreadPool& pool);

// The first side with each other one, without companions.
[[nodiscard]] std::vector<Comparison> compare_first(FileSystem& fs,
                                                    std::span<const Evidence> evidence,
                                                    const CompareOptions& options,
                                                    ThreadPool& pool);

// Checkpoints to compare, ascending; notes say what is left out and why.
[[nodiscard]] std::vector<CommonStep> common_steps(const Evidence& a, const Evidence& b,
                                                   std::vector<std::string>& notes);
}  // namespace lockstep
