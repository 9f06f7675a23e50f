#pragma once

#include <span>
#include <string>

#include "report/comparison.h"

namespace lockstep {

// What stands on top of the page: for each comparison (the first run with another) one verdict in
// words, the training losses' difference, and the surfaces of the last common checkpoint, with
// their intervals and tolerances; earlier checkpoints behind a summary.
[[nodiscard]] std::string verdict_html(std::span<const Comparison> comparisons);

// Two runs' recipes, field by field, where they differ.
[[nodiscard]] std::string recipe_difference_html(const Evidence& a, const Evidence& b);

}  // namespace lockstep
