#pragma once

#include <cstdint>
#include <string_view>

#include "optim/config.h"

namespace lockstep {

// What one AdamW step multiplies by, the same for every element of a parameter (ops/adamw.h).
struct AdamWFactors {
  double decay = 1;                // 1 - lr wd
  double step_size = 0;            // lr / (1 - beta1^t)
  double inv_sqrt_correction = 1;  // 1 / sqrt(1 - beta2^t)
};

// Of update t, counted from 1 over the steps that were taken (a skipped step does not count).
[[nodiscard]] AdamWFactors adamw_factors(const OptimConfig& config, double lr, std::int64_t t,
                                         bool decayed);

// Whether weight decay applies to the parameter of that name.
[[nodiscard]] bool is_decayed(const OptimConfig& config, std::string_view parameter);

// min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_; 1 when max_norm is 0.
// The norm must be finite.
[[nodiscard]] double clip_coefficient(double norm, double max_norm);

}  // namespace lockstep
