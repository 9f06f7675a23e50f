#include "ops/cpu/simd_probe.h"

#include "ops/cpu/simd.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

template <class Y, class X, class F>
LOCKSTEP_INLINE void each(Y* y, const X* x, std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(x + i)));
  if (i < n) store(y + i, f(load(x + i, n - i)), n - i);
}

void probe_exp(float* y, const float* x, std::int64_t n) {
  each(y, x, n, [](const F32x16& v) { return exp(v); });
}
void probe_sigmoid(float* y, const float* x, std::int64_t n) {
  each(y, x, n, [](const F32x16& v) { return sigmoid(v); });
}
void probe_to_bf16(bf16* y, const float* x, std::int64_t n) {
  each(y, x, n, [](const F32x16& v) { return v; });
}
void probe_round_bf16(float* y, const float* x, std::int64_t n) {
  each(y, x, n, [](const F32x16& v) { return round_bf16(v); });
}
void probe_from_bf16(float* y, const bf16* x, std::int64_t n) {
  each(y, x, n, [](const F32x16& v) { return v; });
}

void probe_pairs(float* y, const float* a, const float* b, std::int64_t n) {
  for (std::int64_t i = 0; i + kLanes <= n; i += kLanes) {
    const F32x16 u = load(a + i);
    const F32x16 v = load(b + i);
    store(y + 6 * i, min(u, v));
    store(y + 6 * i + 16, max(u, v));
    store(y + 6 * i + 32, sqrt(u * u));
    store(y + 6 * i + 48, u / v);
    store(y + 6 * i + 64, select(less(u, v), u, v));
    store(y + 6 * i + 80, ((u + v) - u) * v);
  }
}

float probe_hsum(const float* x) { return hsum(load(x)); }
float probe_hmax(const float* x) { return hmax(load(x)); }
double probe_hsum_wide(const float* x) { return hsum(widen(load(x))); }

}  // namespace

const SimdProbe simd_probe = {probe_exp,        probe_sigmoid,   probe_to_bf16,
                              probe_round_bf16, probe_from_bf16, probe_pairs,
                              probe_hsum,       probe_hmax,      probe_hsum_wide};

}  // namespace lockstep::ops::LOCKSTEP_ISA
