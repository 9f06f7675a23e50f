#pragma once

#include <cstdint>

#include "ops/cpu/by_isa.h"

namespace lockstep::ops {

// A (B, T, D) array: element strides of the first two dims.
struct BatchedRows {
  std::int64_t batch_stride;
  std::int64_t row_stride;
};

struct QkNormRopeForwardRows {
  void* y;
  BatchedRows y_rows;
  float* rstd;
  const void* x;
  BatchedRows x_rows;
  const float* weight;
  const float* cos;  // of the first position
  const float* sin;
  std::int64_t positions;  // T
  std::int64_t width;      // D
  std::int64_t half;       // K / 2
  float eps;
};
struct QkNormRopeBackwardRows {
  void* dx;
  BatchedRows dx_rows;
  const void* dy;
  BatchedRows dy_rows;
  const void* x;
  BatchedRows x_rows;
  const float* rstd;
  const float* weight;
  const float* cos;
  const float* sin;
  std::int64_t positions;
  std::int64_t width;
  std::int64_t half;
};

// Over rows [begin, end) of B*T; the same bits on every instruction set. Indices: 0 is f32, 1 is
// bf16.
struct QkNormRopeKernels {
  // [y][x]
  void (*forward[2][2])(const QkNormRopeForwardRows& rows, std::int64_t begin, std::int64_t end);
  // [dx][dy][x]; adds each row's share to dweight, in order.
  void (*backward[2][2][2])(const QkNormRopeBackwardRows& rows, float* dweight, std::int64_t begin,
                            std::int64_t end);
};

LOCKSTEP_FOR_EACH_ISA(extern const QkNormRopeKernels qk_norm_rope_kernels;)

}  // namespace lockstep::ops
