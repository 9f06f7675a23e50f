#pragma once

// The arithmetic of the attention kernels: one multiply-add of units, the micro-kernel that every
// product is made of, and 2^x. Included once per instruction set, after the rules of simd.h.

#include "ops/cpu/attention_kernels.h"
#include "ops/cpu/transpose.h"

namespace lockstep::ops::LOCKSTEP_ISA {

typedef std::uint32_t Unit;

// Rows and vectors of a micro-kernel's accumulators: enough of them to hide the latency of a
// multiply-add, and no more than the registers hold beside a row of vectors and one splat.
#if defined(LOCKSTEP_SANITIZED)
inline constexpr int kMicroRows = 2;
inline constexpr int kMicroVectors = 1;
#elif defined(__AVX512F__)
inline constexpr int kMicroRows = 8;
inline constexpr int kMicroVectors = 2;
#elif defined(__AVX2__)
inline constexpr int kMicroRows = 4;
inline constexpr int kMicroVectors = 1;
#else
inline constexpr int kMicroRows = 2;
inline constexpr int kMicroVectors = 1;
#endif
// Rows of a strip: operands that are splatted are packed in strips of this many rows.
inline constexpr int kStrip = 8;
// Rows of a micro-kernel with V vectors: as many accumulators whatever V is.
template <int V>
inline constexpr int kRowsBeside = (kMicroRows * kMicroVectors) / V;

[[nodiscard]] LOCKSTEP_INLINE constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) {
  return (n + to - 1) / to * to;
}

LOCKSTEP_INLINE U32x16 load_units(const Unit* p) {
  U32x16 x;
  __builtin_memcpy(&x, p, sizeof(x));
  return x;
}
LOCKSTEP_INLINE void store_units(Unit* p, const U32x16& x) { __builtin_memcpy(p, &x, sizeof(x)); }

LOCKSTEP_INLINE U32x16 equal(const U32x16& a, const U32x16& b) {
  return for_parts<U32x16>([&](int i) __attribute__((always_inline)) {
    return (NativeU32)(a.part[i] == b.part[i]);
  });
}
LOCKSTEP_INLINE U32x16 less(const U32x16& a, const U32x16& b) {
  return for_parts<U32x16>([&](int i) __attribute__((always_inline)) {
    return (NativeU32)(a.part[i] < b.part[i]);
  });
}

// The value as a T would hold it.
template <class T>
LOCKSTEP_INLINE F32x16 rounded_to(const F32x16& x) {
  if constexpr (sizeof(T) == sizeof(bf16)) {
    return round_bf16(x);
  } else {
    return x;
  }
}

// One f32 a unit.
struct SingleUnits {
  static constexpr int kElements = 1;
  static LOCKSTEP_INLINE F32x16 multiply_add(const U32x16& a, const U32x16& b, const F32x16& c) {
    return fma(from_bits(a), from_bits(b), c);
  }
  // The lanes of x as consecutive elements, rounded to T.
  template <class T>
  static LOCKSTEP_INLINE void store_lanes(Unit* p, const F32x16& x) {
    store_units(p, bits_of(rounded_to<T>(x)));
  }
};

#if defined(__AVX512BF16__)
// Two bf16 a unit, the first in the lower half: c + a0 b0 + a1 b1.
struct PairUnits {
  static constexpr int kElements = 2;
  static LOCKSTEP_INLINE F32x16 multiply_add(const U32x16& a, const U32x16& b, const F32x16& c) {
    return F32x16{
        {(NativeF32)_mm512_dpbf16_ps((__m512)c.part[0], (__m512bh)a.part[0], (__m512bh)b.part[0])}};
  }
  template <class T>
  static LOCKSTEP_INLINE void store_lanes(Unit* p, const F32x16& x) {
    const auto half = _mm512_cvtneps_pbh((__m512)x.part[0]);
    __builtin_memcpy(p, &half, 32);
  }
  // Units whose elements are a[lane], b[lane], rounded.
  static LOCKSTEP_INLINE U32x16 pair(const F32x16& a, const F32x16& b) {
    const auto both = (__m512i)_mm512_cvtne2ps_pbh((__m512)b.part[0], (__m512)a.part[0]);
    const __m512i interleave =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,  //
                         23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return U32x16{{(NativeU32)_mm512_permutexvar_epi16(interleave, both)}};
  }
};
// The products of bf16 where the instruction set has them, else of their f32 values.
using Bf16Units = PairUnits;
#else
using Bf16Units = SingleUnits;
#endif

// c[r][v] += sum over u < depth of a(r, u) * b(u, v), in ascending u. b(u, v) is vector v of row u,
// rows b_row units apart. a(r, u) is a[u * a_step + r] (kByDepth; rows past a strip lie a_strip
// units after those of the strip before) or a[r * a_step + u] (kByRow).
enum class Order { kByDepth, kByRow };

template <class Units, Order order, int R, int V>
LOCKSTEP_INLINE void accumulate(F32x16 (&c)[R][V], const Unit* a, std::int64_t a_step,
                                const Unit* b, std::int64_t b_row, std::int64_t depth,
                                std::int64_t a_strip = kStrip) {
  for (std::int64_t u = 0; u < depth; ++u) {
    U32x16 bv[V];
    LOCKSTEP_UNROLL
    for (int v = 0; v < V; ++v) bv[v] = load_units(b + v * kLanes);
    LOCKSTEP_UNROLL
    for (int r = 0; r < R; ++r) {
      const U32x16 av = splat_bits(order == Order::kByDepth ? a[r / kStrip * a_strip + r % kStrip]
                                                            : a[r * a_step]);
      LOCKSTEP_UNROLL
      for (int v = 0; v < V; ++v) c[r][v] = Units::multiply_add(av, bv[v], c[r][v]);
    }
    a += order == Order::kByDepth ? a_step : 1;
    b += b_row;
  }
}

// f(row, Rows<R>) for the rows [begin, end), both multiples of kStrip, of a tile NV vectors wide:
// as many at a time as its micro-kernel takes, a strip at the end where those are more.
template <int R>
struct Rows {
  static constexpr int kCount = R;
};
template <int NV, class F>
LOCKSTEP_INLINE void for_micro_rows(int begin, int end, const F& f) {
  constexpr int kMost = kRowsBeside<(NV < kMicroVectors ? NV : kMicroVectors)>;
  int row = begin;
  for (; row + kMost <= end; row += kMost) f(row, Rows<kMost>{});
  if constexpr (kMost > kStrip) {
    for (; row < end; row += kStrip) f(row, Rows<kStrip>{});
  }
}

template <int R, int V>
LOCKSTEP_INLINE void clear(F32x16 (&c)[R][V]) {
  LOCKSTEP_UNROLL
  for (int r = 0; r < R; ++r) {
    LOCKSTEP_UNROLL
    for (int v = 0; v < V; ++v) c[r][v] = zero();
  }
}
template <int R, int V>
LOCKSTEP_INLINE void load_all(F32x16 (&c)[R][V], const float* p, std::int64_t row) {
  LOCKSTEP_UNROLL
  for (int r = 0; r < R; ++r) {
    LOCKSTEP_UNROLL
    for (int v = 0; v < V; ++v) c[r][v] = load(p + r * row + v * kLanes);
  }
}
template <int R, int V>
LOCKSTEP_INLINE void store_all(float* p, std::int64_t row, const F32x16 (&c)[R][V]) {
  LOCKSTEP_UNROLL
  for (int r = 0; r < R; ++r) {
    LOCKSTEP_UNROLL
    for (int v = 0; v < V; ++v) store(p + r * row + v * kLanes, c[r][v]);
  }
}

// 2^x within 2 units in the last place for -126 <= x <= 127; zero below -126.5; exactly 1 for x =
// 0; NaN for NaN. A polynomial in the remainder from the nearest integer n; the coefficients
// minimise the largest relative error with the constant fixed to 1. (vscalefps would save an
// instruction, but takes an assist of a hundred cycles where the result underflows, as it does for
// masked keys.)
LOCKSTEP_INLINE F32x16 exp2(const F32x16& x) {
  const F32x16 clamped = max(splat(-127.0F), x);  // keeps NaN, its second operand
  // 1.5 * 2^23 + 127: adding it rounds to an integer and leaves n + 127 in the low bits.
  const F32x16 shift = splat(12583039.0F);
  const F32x16 shifted = clamped + shift;
  const F32x16 r = clamped - (shifted - shift);
  F32x16 p = splat(1.535336196e-04F);
  p = fma(p, r, splat(1.339887385e-03F));
  p = fma(p, r, splat(9.618436918e-03F));
  p = fma(p, r, splat(5.550332367e-02F));
  p = fma(p, r, splat(2.402264774e-01F));
  p = fma(p, r, splat(6.931471825e-01F));
  p = fma(p, r, splat(1.0F));
  return p * from_bits(shift_left<23>(bits_of(shifted)));  // n = -127 gives a factor of zero
}

}  // namespace lockstep::ops::LOCKSTEP_ISA
