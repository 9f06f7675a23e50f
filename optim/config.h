#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/enum_name.h"

namespace lockstep {

// When a step is passed over because its loss or gradient norm is an outlier (skip_step.h).
struct SkipStepConfig {
  bool enabled = true;
  int window = 128;
  double sigma = 6;

  template <class V>
  void fields(V&& v) {
    v("enabled", enabled, "pass over steps whose loss or gradient norm is an outlier");
    v("window", window, "previous steps compared with; active once half as many are held",
      {.min = 2, .max = 65536});
    v("sigma", sigma, "sample standard deviations above the mean that are too many",
      {.min = 0, .above_min = true});
  }
};

// [optim]: AdamW with decoupled weight decay. Defaults are Olmo 3's.
struct OptimConfig {
  double lr = 3e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  std::vector<std::string> no_decay = {"model.embed_tokens.weight"};
  double grad_clip = 1.0;
  SkipStepConfig skip_step;

  template <class V>
  void fields(V&& v) {
    v("lr", lr, "peak learning rate", {.min = 0, .max = 10});
    v("beta1", beta1, "decay of the first moment, below 1", {.min = 0, .max = 1});
    v("beta2", beta2, "decay of the second moment, below 1", {.min = 0, .max = 1});
    v("eps", eps, "added to the square root of the second moment",
      {.min = 0, .max = 1, .above_min = true});
    v("weight_decay", weight_decay, "decoupled; multiplied by the learning rate each step",
      {.min = 0, .max = 10});
    v("no_decay", no_decay, "names of the parameters without weight decay; all others have it");
    v("grad_clip", grad_clip, "largest global L2 norm of the gradient; 0 means no clipping",
      {.min = 0});
    v("skip_step", skip_step, "steps passed over as outliers");
  }
  // Throws kConfig naming the key, the value and the rule.
  void validate() const;
};

enum class ScheduleKind { kConstant, kLinear, kCosine, kHalfCosine, kWsd };
constexpr auto enum_table(ScheduleKind) {
  return std::array{
      EnumName{ScheduleKind::kConstant, "constant"}, EnumName{ScheduleKind::kLinear, "linear"},
      EnumName{ScheduleKind::kCosine, "cosine"}, EnumName{ScheduleKind::kHalfCosine, "half-cosine"},
      EnumName{ScheduleKind::kWsd, "wsd"}};
}

// [schedule]: the learning rate over the run (schedule.h). Lengths are given in steps or in tokens,
// never both; tokens convert to steps by rounding up.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kCosine;
  std::optional<std::int64_t> warmup_steps = std::nullopt;
  std::optional<std::int64_t> warmup_tokens = std::nullopt;
  std::optional<std::int64_t> horizon_steps = std::nullopt;
  std::optional<std::int64_t> horizon_tokens = std::nullopt;
  std::optional<std::int64_t> decay_steps = std::nullopt;
  std::optional<std::int64_t> decay_tokens = std::nullopt;
  double final_fraction = 0.1;
  double decay_final_fraction = 0;

  template <class V>
  void fields(V&& v) {
    v("kind", kind, "shape after the warm-up");
    v("warmup_steps", warmup_steps, "steps of linear rise from 0; none when neither is set",
      {.min = 0});
    v("warmup_tokens", warmup_tokens, "the same in tokens", {.min = 0});
    v("horizon_steps", horizon_steps,
      "step at which the schedule ends; the run's own end when neither is set", {.min = 1});
    v("horizon_tokens", horizon_tokens, "the same in tokens", {.min = 1});
    v("decay_steps", decay_steps,
      "steps of linear decay that end at the horizon, on top of any kind; wsd needs them",
      {.min = 0});
    v("decay_tokens", decay_tokens, "the same in tokens", {.min = 0});
    v("final_fraction", final_fraction, "of the peak: where linear, cosine and half-cosine end",
      {.min = 0, .max = 1});
    v("decay_final_fraction", decay_final_fraction, "of the peak: where the linear decay ends",
      {.min = 0, .max = 1});
  }
  void validate() const;
};

}  // namespace lockstep
