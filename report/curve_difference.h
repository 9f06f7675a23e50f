#pragma once

#include <cstdint>
#include <span>

#include "report/evidence.h"

namespace lockstep {

// How far two training-loss curves lie apart: A less B, in nats, over the steps that both logged
// with a finite loss. NaN where no step is common.
struct CurveDifference {
  std::int64_t common_steps = 0;
  std::int64_t only_a = 0;  // steps that only A logged
  std::int64_t only_b = 0;
  std::int64_t not_finite = 0;  // common steps at which a loss is missing or not finite
  double mean = 0;
  double spread = 0;  // sample standard deviation; 0 for one step
  double max_abs = 0;
  std::int64_t max_abs_step = 0;
  std::int64_t first_steps = 0;  // how many of the first kFirstSteps steps are common
  double first_max_abs = 0;      // largest difference among them
  // The run of `window` common steps, one after another, whose mean difference is furthest from 0.
  std::int64_t window = 0;
  double worst_mean = 0;
  std::int64_t worst_first = 0;
  std::int64_t worst_last = 0;
  // Mean losses over the last `window` common steps.
  double last_a = 0;
  double last_b = 0;
  // Common steps whose batch digests both sides logged, and those where they differ.
  std::int64_t batches = 0;
  std::int64_t different_batches = 0;
};

inline constexpr std::int64_t kFirstSteps = 50;
inline constexpr std::int64_t kDefaultWindow = 50;

// Both curves ascend by step. The window is cut to the number of common steps; window >= 1.
[[nodiscard]] CurveDifference compare_curves(std::span<const CurvePoint> a,
                                             std::span<const CurvePoint> b,
                                             std::int64_t window = kDefaultWindow);

}  // namespace lockstep
