#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "config/read.h"

namespace lockstep {
namespace {

double mix(double from, double to, double share) { return from + (to - from) * share; }

}  // namespace

double Schedule::shape(std::int64_t t) const {
  const double floor = final_fraction * peak;
  const auto span = static_cast<double>(horizon - warmup);
  const double share = static_cast<double>(std::min(t, horizon) - warmup) / span;
  switch (kind) {
    case ScheduleKind::kConstant:
    case ScheduleKind::kWsd:
      return peak;
    case ScheduleKind::kLinear:
      return t >= horizon ? floor : mix(peak, floor, share);
    case ScheduleKind::kCosine:
      if (t >= horizon) return floor;
      return mix(floor, peak, (1 + std::cos(std::numbers::pi * share)) / 2);
    case ScheduleKind::kHalfCosine:
      if (t >= horizon) return floor;
      return mix(floor, peak, (1 + std::cos(std::numbers::pi * (share + 1) / 2)) / 2);
  }
  LOCKSTEP_CHECK(false, "schedule kind ", static_cast<int>(kind));
}

double Schedule::lr(std::int64_t t) const {
  if (t < warmup) return shape(warmup) * static_cast<double>(t) / static_cast<double>(warmup);
  const std::int64_t decay_start = horizon - decay;
  if (decay == 0 || t <= decay_start) return shape(t);
  const double share =
      static_cast<double>(std::min(t, horizon) - decay_start) / static_cast<double>(decay);
  return mix(shape(decay_start), decay_final_fraction * peak, share);
}

std::int64_t steps_for_tokens(std::int64_t tokens, std::int64_t tokens_per_step) {
  LOCKSTEP_CHECK(tokens >= 0 && tokens_per_step > 0, tokens, " / ", tokens_per_step);
  return tokens / tokens_per_step + (tokens % tokens_per_step != 0 ? 1 : 0);
}

Schedule resolve_schedule(const ScheduleConfig& config, double peak, std::int64_t tokens_per_step,
                          std::int64_t run_steps) {
  const auto length = [&](const std::optional<std::int64_t>& steps,
                          const std::optional<std::int64_t>& tokens, std::int64_t otherwise) {
    return steps ? *steps : tokens ? steps_for_tokens(*tokens, tokens_per_step) : otherwise;
  };
  Schedule schedule{.kind = config.kind,
                    .peak = peak,
                    .warmup = length(config.warmup_steps, config.warmup_tokens, 0),
                    .horizon = length(config.horizon_steps, config.horizon_tokens, run_steps),
                    .decay = length(config.decay_steps, config.decay_tokens, 0),
                    .final_fraction = config.final_fraction,
                    .decay_final_fraction = config.decay_final_fraction};
  const bool flat = config.kind == ScheduleKind::kConstant || config.kind == ScheduleKind::kWsd;
  // A flat schedule may be cut inside its warm-up; the others divide by what remains after it.
  if (schedule.warmup + schedule.decay > schedule.horizon || schedule.horizon < 1 ||
      (!flat && schedule.warmup >= schedule.horizon)) {
    fail_key(config.warmup_tokens ? "schedule.warmup_tokens" : "schedule.warmup_steps",
             {schedule.warmup},
             concat("a warm-up of ", schedule.warmup, " steps and a decay of ", schedule.decay,
                    " do not fit before the horizon at step ", schedule.horizon,
                    "; shorten them, or run a short piece of a longer schedule with "
                    "schedule.horizon_steps or train.stop_at"));
  }
  return schedule;
}

}  // namespace lockstep
