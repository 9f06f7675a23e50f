#include "optim/adamw.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace lockstep {

AdamWFactors adamw_factors(const OptimConfig& config, double lr, std::int64_t t, bool decayed) {
  LOCKSTEP_CHECK(t >= 1, "update ", t);
  const auto updates = static_cast<double>(t);
  return {.decay = decayed ? 1 - lr * config.weight_decay : 1,
          .step_size = lr / (1 - std::pow(config.beta1, updates)),
          .inv_sqrt_correction = 1 / std::sqrt(1 - std::pow(config.beta2, updates))};
}

bool is_decayed(const OptimConfig& config, std::string_view parameter) {
  return std::find(config.no_decay.begin(), config.no_decay.end(), parameter) ==
         config.no_decay.end();
}

double clip_coefficient(double norm, double max_norm) {
  LOCKSTEP_CHECK(std::isfinite(norm) && norm >= 0, "gradient norm ", norm);
  return max_norm == 0 ? 1 : std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace lockstep
