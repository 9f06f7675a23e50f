#include "ops/cpu/swiglu_kernels.h"

#include "ops/cpu/simd.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

template <class T>
void forward(const SwiGluForwardRows& rows, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    T* y = static_cast<T*>(rows.y) + row * rows.width;
    const T* gate = static_cast<const T*>(rows.gate_up) + 2 * row * rows.width;
    const T* up = gate + rows.width;
    for_lanes(rows.width, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
      store(y + i, silu(load(gate + i, lanes)) * load(up + i, lanes), lanes);
    });
  }
}

template <class T>
void backward(const SwiGluBackwardRows& rows, std::int64_t begin, std::int64_t end) {
  const F32x16 one = splat(1.0F);
  for (std::int64_t row = begin; row < end; ++row) {
    T* dgate = static_cast<T*>(rows.dgate_up) + 2 * row * rows.width;
    T* dup = dgate + rows.width;
    const T* dy = static_cast<const T*>(rows.dy) + row * rows.width;
    const T* gate = static_cast<const T*>(rows.gate_up) + 2 * row * rows.width;
    const T* up = gate + rows.width;
    for_lanes(rows.width, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
      const F32x16 g = load(gate + i, lanes);
      const F32x16 grad = load(dy + i, lanes);
      const F32x16 s = sigmoid(g);
      const F32x16 du = grad * (g * s);
      const F32x16 dg = grad * load(up + i, lanes) * s * (one + g * (one - s));
      store(dgate + i, dg, lanes);
      store(dup + i, du, lanes);
    });
  }
}

}  // namespace

const SwiGluKernels swiglu_kernels = {.forward = {forward<float>, forward<bf16>},
                                      .backward = {backward<float>, backward<bf16>}};

}  // namespace lockstep::ops::LOCKSTEP_ISA
