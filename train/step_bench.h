#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/counts.h"
#include "ops/machine_peak.h"
#include "train/recipe.h"

namespace lockstep {

// All calls of one op in the traced steps.
struct OpTime {
  std::string name;
  std::int64_t calls = 0;
  double seconds = 0;
  double flops = 0;
  double bytes = 0;
};

struct StepBench {
  std::int64_t steps = 0;  // timed ones
  std::vector<double> step_seconds;
  double median_seconds = 0;
  double tokens_per_step = 0;
  StepFlops flops;                     // of a step
  ops::MachinePeak peak;               // measured before and after, the better of both
  double peak_flops = 0;               // of these, what the recipe's precision is measured against
  std::vector<OpTime> ops;             // most time first; over all timed steps
  double traced_seconds = 0;           // of all ops
  std::int64_t peak_memory_bytes = 0;  // of the process
  std::int64_t predicted_memory_bytes = 0;  // as the dry run says of a step
};

// Trains `steps` steps of the recipe on made-up tokens, after one that is not timed: no data, no
// files. Throws as Learner.
[[nodiscard]] StepBench bench_step(const Recipe& recipe, std::int64_t steps);

}  // namespace lockstep
