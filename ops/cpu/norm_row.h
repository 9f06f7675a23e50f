#pragma once

// What the norm kernels share; for kernel sources only (see simd.h).

#include "ops/cpu/simd.h"

namespace lockstep::ops::LOCKSTEP_ISA {

// 1 / sqrt(mean of x^2 + eps)
template <class X>
LOCKSTEP_INLINE float rstd_of_row(const X* x, std::int64_t width, float eps) {
  const float sum = sum_lanes(width, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
    fetch_ahead(x + i);
    const F32x16 value = load(x + i, lanes);
    return value * value;
  });
  const F32x16 mean = splat(sum / static_cast<float>(width) + eps);
  return first_lane(splat(1.0F) / sqrt(mean));
}

}  // namespace lockstep::ops::LOCKSTEP_ISA
