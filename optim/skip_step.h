#pragma once

#include <cstdint>
#include <vector>

#include "optim/config.h"

namespace lockstep {

enum class StepVerdict { kTake, kLossOutlier, kGradNormOutlier, kNonFinite };
constexpr auto enum_table(StepVerdict) {
  return std::array{EnumName{StepVerdict::kTake, "take"},
                    EnumName{StepVerdict::kLossOutlier, "loss outlier"},
                    EnumName{StepVerdict::kGradNormOutlier, "gradient norm outlier"},
                    EnumName{StepVerdict::kNonFinite, "not finite"}};
}

// The rule that passes over a step whose loss or gradient norm is an outlier among the steps before
// it. Its whole state is the public members, which go into every checkpoint. Not thread-safe; every
// rank keeps its own from the same values.
//
// A step is skipped when its loss or its norm exceeds mean + sigma * std (sample standard
// deviation) of the previous values held, at most `window` of them, once window / 2 values are
// held, the current one included. Skipped values stay in the window. Source: OLMo-core
// optim/skip_step_optimizer.py. Differences: a value that is not finite is skipped and never enters
// the window (there it would disable the optimiser for `window` steps), and sums are in fp64.
struct SkipStep {
  std::vector<double> losses = {};      // oldest first, at most `window`
  std::vector<double> grad_norms = {};  // as losses
  std::int64_t skipped_in_row = 0;      // steps skipped since the last that was taken
  std::int64_t skipped_total = 0;

  // Judges one step and takes its values in. ce_loss is the global mean cross-entropy without
  // z-loss, grad_norm the global norm before clipping. With the rule switched off only a step that
  // is not finite is skipped.
  [[nodiscard]] StepVerdict judge(const SkipStepConfig& config, double ce_loss, double grad_norm);
};

}  // namespace lockstep
