#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/evidence.h"
#include "report/html_run.h"

namespace lockstep {

// Training loss of run 0 less that of run `run`, by common step.
struct LossDifference {
  std::size_t run = 0;
  StepSeries series{1, 2};
};
[[nodiscard]] LossDifference loss_difference(std::size_t run, std::span<const CurvePoint> first,
                                             std::span<const CurvePoint> curve,
                                             std::size_t capacity);

// The numbers behind the charts, as JSON. Numbers have 7 significant digits (what is compared is
// compared on all bits elsewhere); what is not finite is null.

// {"runs": [{"name", "width", "step": [...], "columns": {KEY: {"mean": [...], "min", "max"}},
//  "marks": [{"kind", "step", "text"}], "surfaces": [...]}], "differences": [...]}.
// "min" and "max" only where a point stands for several steps (width > 1).
[[nodiscard]] std::string chart_json(std::span<const RunPage* const> runs,
                                     std::span<const LossDifference> differences);

// The points of one run from bucket `first` on: `"width": w, "step": [...], "columns": {...}`,
// without braces around it.
[[nodiscard]] std::string curve_json(const RunPage& run, std::size_t first);
// Likewise `"marks": [...], "surfaces": [...]`.
[[nodiscard]] std::string marks_json(const RunPage& run);

}  // namespace lockstep
