#pragma once

#include <cstdint>

#include "ops/cpu/by_isa.h"

namespace lockstep::ops {

// Loops that run at the speed of the hardware, each with its count of flops or bytes a round.
struct PeakKernel {
  double bf16_flops_per_round;
  double fp32_flops_per_round;
  // `rounds` of independent multiply-adds; the result is a value that depends on all of them.
  float (*bf16)(std::int64_t rounds);
  float (*fp32)(std::int64_t rounds);
  // The sum of n (a multiple of 256) floats.
  float (*read)(const float* x, std::int64_t n);
};

LOCKSTEP_FOR_EACH_ISA(extern const PeakKernel peak_kernel;)

}  // namespace lockstep::ops
