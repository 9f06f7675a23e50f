#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "ops/cpu/by_isa.h"

namespace lockstep::ops {

// Over n contiguous elements; the same bits on every instruction set.
struct ElementwiseKernels {
  void (*add)(float* y, const float* a, const float* b, std::int64_t n);
  void (*round)(bf16* y, const float* x, std::int64_t n);
  void (*widen)(float* y, const bf16* x, std::int64_t n);
  // y = x, and rounded = x as bf16, in one pass.
  void (*copy_and_round)(float* y, bf16* rounded, const float* x, std::int64_t n);
  double (*sum_of_squares)(const float* x, std::int64_t n);
  // y[i] = sum of partials[c * stride + i] over c in order; y may be partials.
  void (*sum_rows)(float* y, const float* partials, std::int64_t rows, std::int64_t stride,
                   std::int64_t n);
};

LOCKSTEP_FOR_EACH_ISA(extern const ElementwiseKernels elementwise_kernels;)

[[nodiscard]] inline const ElementwiseKernels& elementwise_kernels(Isa isa) {
  return *by_isa(isa, &portable::elementwise_kernels, &avx2::elementwise_kernels,
                 &avx512::elementwise_kernels, &avx512::elementwise_kernels);
}

}  // namespace lockstep::ops
