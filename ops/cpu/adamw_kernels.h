#pragma once

#include <cstdint>

#include "ops/cpu/by_isa.h"

namespace lockstep::ops {

struct AdamWScalars {
  float decay;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float step_size;
  float inv_sqrt_correction;
  float eps;
  float grad_scale;
};

// One update of n contiguous elements; the same bits on every instruction set.
struct AdamWKernels {
  void (*step)(float* p, float* m, float* v, const float* g, std::int64_t n,
               const AdamWScalars& scalars);
};

LOCKSTEP_FOR_EACH_ISA(extern const AdamWKernels adamw_kernels;)

}  // namespace lockstep::ops
