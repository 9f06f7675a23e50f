#include "optim/config.h"

#include "config/read.h"

namespace lockstep {
namespace {

void one_unit(const char* steps_key, const std::optional<std::int64_t>& steps,
              const std::optional<std::int64_t>& tokens) {
  if (steps && tokens) {
    fail_key(steps_key, {*steps}, "give steps or tokens, not both; unset one with KEY=");
  }
}

}  // namespace

void OptimConfig::validate() const {
  if (beta1 >= 1) fail_key("optim.beta1", {beta1}, "must be below 1");
  if (beta2 >= 1) fail_key("optim.beta2", {beta2}, "must be below 1");
}

void ScheduleConfig::validate() const {
  one_unit("schedule.warmup_steps", warmup_steps, warmup_tokens);
  one_unit("schedule.horizon_steps", horizon_steps, horizon_tokens);
  one_unit("schedule.decay_steps", decay_steps, decay_tokens);
  if (kind == ScheduleKind::kWsd && !decay_steps && !decay_tokens) {
    fail_key("schedule.kind", {std::string("wsd")},
             "needs schedule.decay_steps or schedule.decay_tokens");
  }
}

}  // namespace lockstep
