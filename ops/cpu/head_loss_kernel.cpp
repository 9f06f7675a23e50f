#include "ops/cpu/head_loss_kernel.h"

#include "ops/cpu/simd.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

LOCKSTEP_INLINE float largest(const float* x, std::int64_t n) {
  constexpr std::int64_t kWidth = 4;  // chains, since a maximum takes 4 cycles
  std::int64_t i = 0;
  float max = x[0];
  if (n >= kWidth * kLanes) {
    F32x16 best[kWidth];
    for (std::int64_t j = 0; j < kWidth; ++j) best[j] = load(x + j * kLanes);
    for (i = kWidth * kLanes; i + kWidth * kLanes <= n; i += kWidth * kLanes) {
      for (std::int64_t j = 0; j < kWidth; ++j) {
        best[j] = ops::LOCKSTEP_ISA::max(load(x + i + j * kLanes), best[j]);
      }
    }
    for (std::int64_t j = 1; j < kWidth; ++j) best[0] = ops::LOCKSTEP_ISA::max(best[j], best[0]);
    max = hmax(best[0]);
  }
  for (; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

// keep(i, e, count): what to do with e of the lanes from i on.
template <class Keep>
LOCKSTEP_INLINE RowStatistics sweep(const float* logits, std::int64_t n, const Keep& keep) {
  const float max = largest(logits, n);
  const F32x16 top = splat(max);
  F32x16 sums[2] = {zero(), zero()};
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const F32x16 even = exp(load(logits + i) - top);
    const F32x16 odd = exp(load(logits + i + kLanes) - top);
    sums[0] = sums[0] + even;
    sums[1] = sums[1] + odd;
    keep(i, even, kLanes);
    keep(i + kLanes, odd, kLanes);
  }
  for (; i < n; i += kLanes) {
    const std::int64_t some = n - i < kLanes ? n - i : kLanes;
    float lanes[kLanes] = {};
    store(lanes, exp(load(logits + i, some) - top));
    const F32x16 e = load(lanes, some);  // zeros in the lanes past the end
    sums[0] = sums[0] + e;
    keep(i, e, some);
  }
  return {max, hsum(sums[0] + sums[1])};
}

RowStatistics statistics(const float* logits, std::int64_t n) {
  return sweep(logits, n, [](std::int64_t, const F32x16&, std::int64_t) {});
}

RowStatistics exponentials(float* e, const float* logits, std::int64_t n) {
  return sweep(logits, n, [e](std::int64_t i, const F32x16& x, std::int64_t some) {
    some == kLanes ? store(e + i, x) : store(e + i, x, some);
  });
}

LOCKSTEP_INLINE void store_low_halves(std::uint16_t* p, const U32x16& x) {
#if defined(__AVX512F__)
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16((__m512i)x.part[0]));
#else
  std::uint32_t lanes[kLanes];
  __builtin_memcpy(lanes, &x, sizeof(x));
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<std::uint16_t>(lanes[i]);
#endif
}

RowStatistics compact_exponentials(std::uint16_t* e, const float* logits, std::int64_t n) {
  return sweep(logits, n, [e](std::int64_t i, const F32x16& x, std::int64_t some) {
    const U32x16 bits = bits_of(x);
    const U32x16 odd = shift_right<kCompactShift>(bits) & splat_bits(1);
    const U32x16 half = splat_bits((1U << (kCompactShift - 1)) - 1);
    const U32x16 compact = shift_right<kCompactShift>(bits + half + odd);
    if (some == kLanes) {
      store_low_halves(e + i, compact);
      return;
    }
    std::uint16_t lanes[kLanes];
    store_low_halves(lanes, compact);
    __builtin_memcpy(e + i, lanes, static_cast<std::size_t>(some) * sizeof(*e));
  });
}

std::int64_t first_of(const float* logits, std::int64_t n, float value) {
  std::int64_t i = 0;
  while (i < n && !(logits[i] == value)) ++i;
  return i;
}

void gradient(float* e, std::int64_t n, float factor, std::int64_t at, float target) {
  const float here = at < 0 ? 0.0F : e[at] * factor - target;
  const F32x16 scale = splat(factor);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(e + i, load(e + i) * scale);
  for (; i < n; ++i) e[i] *= factor;
  if (at >= 0) e[at] = here;
}

LOCKSTEP_INLINE F32x16 expand(const std::uint16_t* e) {
#if defined(__AVX512F__)
  const __m256i half = _mm256_loadu_si256((const __m256i*)e);
  return F32x16{{(NativeF32)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), kCompactShift)}};
#else
  std::uint32_t lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = std::uint32_t{e[i]} << kCompactShift;
  U32x16 bits;
  __builtin_memcpy(&bits, lanes, sizeof(bits));
  return from_bits(bits);
#endif
}

void compact_gradient(void* e, std::int64_t n, float factor, std::int64_t at, float target) {
  auto* in = static_cast<std::uint16_t*>(e);
  auto* out = static_cast<bf16*>(e);
  const F32x16 scale = splat(factor);
  float here = 0;
  if (at >= 0) {
    here = __builtin_bit_cast(float, std::uint32_t{in[at]} << kCompactShift) * factor - target;
  }
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, expand(in + i) * scale);
  if (i < n) {
    const std::int64_t some = n - i;
    std::uint16_t lanes[kLanes] = {};
    __builtin_memcpy(lanes, in + i, static_cast<std::size_t>(some) * sizeof(*in));
    store(out + i, expand(lanes) * scale, some);
  }
  if (at >= 0) store(out + at, splat(here), 1);
}

}  // namespace

extern const HeadLossKernels head_loss_kernels;
const HeadLossKernels head_loss_kernels = {statistics, exponentials, compact_exponentials,
                                           first_of,   gradient,     compact_gradient};

}  // namespace lockstep::ops::LOCKSTEP_ISA
