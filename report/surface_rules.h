#pragma once

#include <string_view>

#include "report/surfaces.h"

namespace lockstep {

// Inside report: fills in verdict and reason of a result whose estimate and tolerance are there.
// `unit` is what the estimate counts: "documents", "questions".
void decide(SurfaceResult& result, std::int64_t minimum, std::string_view unit);

}  // namespace lockstep
