#pragma once

#include <cstdint>

#include "ops/cpu/by_isa.h"

namespace lockstep::ops {

// Pointers as the op's views; strides in elements between rows.
struct RmsNormForwardRows {
  void* y;
  float* rstd;
  const void* x;
  std::int64_t x_stride;
  const float* weight;
  std::int64_t width;
  float eps;
};
struct RmsNormBackwardRows {
  void* dx;
  const void* dy;
  const void* x;
  std::int64_t x_stride;
  const float* rstd;
  const float* weight;
  std::int64_t width;
};
struct NormResidualRows {
  float* h;
  void* h_rounded;  // null: not wanted
  float* rstd;
  const void* a;
  const float* x;
  const float* weight;
  std::int64_t width;
  float eps;
};

// Over rows [begin, end); the same bits on every instruction set. Indices: 0 is f32, 1 is bf16.
struct RmsNormKernels {
  // [y][x]
  void (*forward[2][2])(const RmsNormForwardRows& rows, std::int64_t begin, std::int64_t end);
  // [dx][dy][x]; adds each row's share to dweight, in order.
  void (*backward[2][2][2])(const RmsNormBackwardRows& rows, float* dweight, std::int64_t begin,
                            std::int64_t end);
  // [a]
  void (*norm_residual[2])(const NormResidualRows& rows, std::int64_t begin, std::int64_t end);
};

LOCKSTEP_FOR_EACH_ISA(extern const RmsNormKernels rms_norm_kernels;)

}  // namespace lockstep::ops
