#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "eval/evaluation_file.h"

namespace lockstep {

// A number with the half-width of its 95% interval; NaN where one cannot be had.
struct Measured {
  double value = 0;
  double half_width = 0;
};

// One held-out number over a run's evaluated steps: the loss of a domain, the accuracy of a task,
// the mean token KL.
struct SurfaceLine {
  std::string group;  // "Held-out loss", "Tasks", "Token KL"
  std::string label;  // the domain, the task, the reference
  std::string unit;
  std::vector<std::int64_t> steps;  // ascending
  std::vector<Measured> values;
};

// In the order of groups, within them of first appearance. Half-widths: for losses and KL Student's
// t times the standard error of a ratio of sums over documents (Cochran 1977, "Sampling
// Techniques", eq. 6.13); for tasks 1.96 times the reported standard error.
[[nodiscard]] std::vector<SurfaceLine> surface_lines(
    const std::map<std::int64_t, Evaluation>& evaluations);

}  // namespace lockstep
