#include "optim/skip_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace lockstep {
namespace {

// value > mean + sigma * std of the values held before it.
bool is_outlier(const std::vector<double>& held, double value, double sigma) {
  const auto count = static_cast<double>(held.size());
  const double mean = std::accumulate(held.begin(), held.end(), 0.0) / count;
  double squares = 0;
  for (const double each : held) squares += (each - mean) * (each - mean);
  return value - mean > sigma * std::sqrt(squares / (count - 1));
}

void push(std::vector<double>& held, double value, std::size_t window) {
  held.push_back(value);
  if (held.size() > window) held.erase(held.begin(), held.end() - static_cast<long>(window));
}

}  // namespace

StepVerdict SkipStep::judge(const SkipStepConfig& config, double ce_loss, double grad_norm) {
  LOCKSTEP_CHECK(losses.size() == grad_norms.size(), losses.size(), " and ", grad_norms.size());
  StepVerdict verdict = StepVerdict::kTake;
  if (!std::isfinite(ce_loss) || !std::isfinite(grad_norm)) {
    verdict = StepVerdict::kNonFinite;
  } else {
    const auto window = static_cast<std::size_t>(config.window);
    const std::size_t held = losses.size() + 1;
    // A sample deviation needs two previous values.
    if (config.enabled && held >= std::max<std::size_t>(window / 2, 3)) {
      if (is_outlier(losses, ce_loss, config.sigma)) {
        verdict = StepVerdict::kLossOutlier;
      } else if (is_outlier(grad_norms, grad_norm, config.sigma)) {
        verdict = StepVerdict::kGradNormOutlier;
      }
    }
    push(losses, ce_loss, window);
    push(grad_norms, grad_norm, window);
  }
  skipped_in_row = verdict == StepVerdict::kTake ? 0 : skipped_in_row + 1;
  skipped_total += verdict == StepVerdict::kTake ? 0 : 1;
  return verdict;
}

}  // namespace lockstep
