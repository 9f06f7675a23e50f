#pragma once

#include <vector>

#include "config/compare.h"
#include "report/curve_difference.h"
#include "report/evidence.h"

namespace lockstep {

// What two runs do differently and how far their training losses lie apart.
struct RunDiff {
  bool recipes_compared = false;   // both sides are runs
  std::vector<Difference> recipe;  // every field that differs, A's value before B's
  CurveDifference curve;
};

// Reads both recipes again; throws as read_recipe.
[[nodiscard]] RunDiff diff_runs(const Evidence& a, const Evidence& b,
                                std::int64_t window = kDefaultWindow);

}  // namespace lockstep
