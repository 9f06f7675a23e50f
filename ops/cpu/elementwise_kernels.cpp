#include "ops/cpu/elementwise_kernels.h"

#include "ops/cpu/simd.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

void add(float* y, const float* a, const float* b, std::int64_t n) {
  for_lanes(n, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
    store(y + i, load(a + i, lanes) + load(b + i, lanes), lanes);
  });
}

template <class Y, class X>
LOCKSTEP_INLINE void convert(Y* y, const X* x, std::int64_t n) {
  for_lanes(n, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
    fetch_ahead(x + i);
    store(y + i, load(x + i, lanes), lanes);
  });
}
void round(bf16* y, const float* x, std::int64_t n) { convert(y, x, n); }
void widen_all(float* y, const bf16* x, std::int64_t n) { convert(y, x, n); }

void copy_and_round(float* y, bf16* rounded, const float* x, std::int64_t n) {
  for_lanes(n, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
    const F32x16 value = load(x + i, lanes);
    store(y + i, value, lanes);
    store(rounded + i, value, lanes);
  });
}

double sum_of_squares(const float* x, std::int64_t n) {
  F64x16 even{}, odd{};
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    fetch_ahead(x + i);
    fetch_ahead(x + i + kLanes);
    const F64x16 a = widen(load(x + i));
    const F64x16 b = widen(load(x + i + kLanes));
    even = even + a * a;
    odd = odd + b * b;
  }
  for (; i < n; i += kLanes) {
    const F64x16 a = widen(n - i < kLanes ? load(x + i, n - i) : load(x + i));
    even = even + a * a;
  }
  return hsum(even + odd);
}

void sum_rows(float* y, const float* partials, std::int64_t rows, std::int64_t stride,
              std::int64_t n) {
  for_lanes(n, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
    F32x16 sum = load(partials + i, lanes);
    for (std::int64_t row = 1; row < rows; ++row) {
      sum = sum + load(partials + row * stride + i, lanes);
    }
    store(y + i, sum, lanes);
  });
}

}  // namespace

const ElementwiseKernels elementwise_kernels = {.add = add,
                                                .round = round,
                                                .widen = widen_all,
                                                .copy_and_round = copy_and_round,
                                                .sum_of_squares = sum_of_squares,
                                                .sum_rows = sum_rows};

}  // namespace lockstep::ops::LOCKSTEP_ISA
