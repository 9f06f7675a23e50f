#pragma once

#include <cstdint>

#include "optim/config.h"

namespace lockstep {

// The learning rate as a pure function of the step. Thread-safe.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double peak = 0;
  std::int64_t warmup = 0;   // w, steps
  std::int64_t horizon = 1;  // T, steps
  std::int64_t decay = 0;    // d, steps; 0: no final decay
  double final_fraction = 0;
  double decay_final_fraction = 0;

  // The rate of optimiser step t; the first step of a run is t = 1. With f = final_fraction * peak:
  //   warm-up, t < w:   top * t / w, where top is the shape's value at w
  //   constant, wsd:    peak
  //   linear:           peak - (peak - f) (t - w) / (T - w)
  //   cosine:           f + (peak - f) (1 + cos(pi (t - w) / (T - w))) / 2
  //   half-cosine:      f + (peak - f) (1 + cos(pi (t - w + T - w) / (2 (T - w)))) / 2:
  //                     the second half of a cosine, so it starts at the middle, (peak + f) / 2
  //   decay, t > T - d: the value at T - d going linearly to decay_final_fraction * peak at T
  // Past T the rate stays at its last value. Source: OLMo-core optim/scheduler.py
  // (LinearWithWarmup, CosWithWarmup, HalfCosWithWarmup, WSD, CosWithWarmupAndLinearDecay); there
  // WSD goes on falling past T, here it stays.
  [[nodiscard]] double lr(std::int64_t t) const;

 private:
  [[nodiscard]] double shape(std::int64_t t) const;
};

// Steps that hold that many tokens, rounded up.
[[nodiscard]] std::int64_t steps_for_tokens(std::int64_t tokens, std::int64_t tokens_per_step);

// The schedule with its lengths in steps. run_steps is the horizon when the config names none.
// Throws kConfig when warm-up and decay do not fit within the horizon.
[[nodiscard]] Schedule resolve_schedule(const ScheduleConfig& config, double peak,
                                        std::int64_t tokens_per_step, std::int64_t run_steps);

}  // namespace lockstep
