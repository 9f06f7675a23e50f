#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "ops/cpu/by_isa.h"

// The operations of simd.h over arrays, for its test.
namespace lockstep::ops {

struct SimdProbe {
  void (*exp)(float* y, const float* x, std::int64_t n);
  void (*sigmoid)(float* y, const float* x, std::int64_t n);
  void (*to_bf16)(bf16* y, const float* x, std::int64_t n);
  void (*round_bf16)(float* y, const float* x, std::int64_t n);
  void (*from_bf16)(float* y, const bf16* x, std::int64_t n);
  // y[0..5]: min, max, sqrt, quotient, a < b ? a : b by select, ((a + b) - a) * b
  void (*pairs)(float* y, const float* a, const float* b, std::int64_t n);
  float (*hsum)(const float* x16);
  float (*hmax)(const float* x16);
  double (*hsum_wide)(const float* x16);
};

LOCKSTEP_FOR_EACH_ISA(extern const SimdProbe simd_probe;)

}  // namespace lockstep::ops
