#pragma once

#include "base/json.h"
#include "report/comparison.h"

namespace lockstep {

// What `lockstep compare --json` prints (docs/compare.md). Numbers that are not finite are null.
[[nodiscard]] OrderedJson to_json(const Comparison& comparison);

}  // namespace lockstep
