#pragma once

// Vector arithmetic for kernel sources that are compiled once per instruction set (see
// lockstep_kernels in ops/CMakeLists.txt). A kernel source includes this and headers that emit no
// code, and puts everything in namespace lockstep::ops::LOCKSTEP_ISA: an inline function of the
// standard library, compiled here with wide instructions, could be the copy that the linker keeps
// for the whole program.
//
// Every type has 16 lanes whatever the registers are, and every operation but fma() gives the same
// bits on every instruction set: the operations are IEEE's, nothing is contracted, sums across
// lanes have one tree. fma() rounds once where the hardware can and twice in `portable`, so a
// kernel that promises equal bits does not use it.

#include <immintrin.h>

#include <cstdint>

#include "base/dtype.h"

#define LOCKSTEP_INLINE inline __attribute__((always_inline))
#define LOCKSTEP_LAMBDA __attribute__((always_inline))  // between a lambda's parameters and body

namespace lockstep::ops::LOCKSTEP_ISA {

inline constexpr int kLanes = 16;
#if defined(__AVX512F__)
inline constexpr int kNative = 16;  // floats in a register
#elif defined(__AVX2__)
inline constexpr int kNative = 8;
#else
inline constexpr int kNative = 4;
#endif
inline constexpr int kParts = kLanes / kNative;

typedef float NativeF32 __attribute__((vector_size(kNative * 4)));
typedef std::uint32_t NativeU32 __attribute__((vector_size(kNative * 4)));
typedef double NativeF64 __attribute__((vector_size(kNative * 4)));

struct F32x16 {
  NativeF32 part[kParts];
};
// Also the type of a mask: all ones or all zeros in each lane.
struct U32x16 {
  NativeU32 part[kParts];
};
struct F64x16 {
  NativeF64 part[2 * kParts];
};

// V{f(0), f(1), ...}: indices are constants after inlining, so that parts live in registers.
template <class V, class F>
LOCKSTEP_INLINE V for_parts(const F& f) {
  if constexpr (sizeof(V) / sizeof(V{}.part[0]) == 1) {
    return V{{f(0)}};
  } else if constexpr (sizeof(V) / sizeof(V{}.part[0]) == 2) {
    return V{{f(0), f(1)}};
  } else if constexpr (sizeof(V) / sizeof(V{}.part[0]) == 4) {
    return V{{f(0), f(1), f(2), f(3)}};
  } else {
    return V{{f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)}};
  }
}

#define LOCKSTEP_BINARY(V, op)                                                          \
  LOCKSTEP_INLINE V operator op(const V& a, const V& b) {                               \
    return for_parts<V>([&](int i) LOCKSTEP_LAMBDA { return a.part[i] op b.part[i]; }); \
  }
LOCKSTEP_BINARY(F32x16, +)
LOCKSTEP_BINARY(F32x16, -)
LOCKSTEP_BINARY(F32x16, *)
LOCKSTEP_BINARY(F32x16, /)
LOCKSTEP_BINARY(F64x16, +)
LOCKSTEP_BINARY(F64x16, *)
LOCKSTEP_BINARY(U32x16, +)
LOCKSTEP_BINARY(U32x16, -)
LOCKSTEP_BINARY(U32x16, &)
LOCKSTEP_BINARY(U32x16, |)
LOCKSTEP_BINARY(U32x16, ^)
#undef LOCKSTEP_BINARY

#define LOCKSTEP_COMPARE(name, op)                                                                 \
  LOCKSTEP_INLINE U32x16 name(const F32x16& a, const F32x16& b) {                                  \
    return for_parts<U32x16>([&](int i)                                                            \
                                 LOCKSTEP_LAMBDA { return (NativeU32)(a.part[i] op b.part[i]); }); \
  }
LOCKSTEP_COMPARE(less, <)
LOCKSTEP_COMPARE(greater, >)
LOCKSTEP_COMPARE(equal, ==)
LOCKSTEP_COMPARE(not_equal, !=)
#undef LOCKSTEP_COMPARE

LOCKSTEP_INLINE F32x16 splat(float x) {
  return for_parts<F32x16>([&](int) LOCKSTEP_LAMBDA { return x - NativeF32{}; });
}
LOCKSTEP_INLINE U32x16 splat_bits(std::uint32_t x) {
  return for_parts<U32x16>([&](int) LOCKSTEP_LAMBDA { return x - NativeU32{}; });
}
LOCKSTEP_INLINE F32x16 zero() { return F32x16{}; }

LOCKSTEP_INLINE U32x16 bits_of(const F32x16& x) {
  return for_parts<U32x16>([&](int i) LOCKSTEP_LAMBDA { return (NativeU32)x.part[i]; });
}
LOCKSTEP_INLINE F32x16 from_bits(const U32x16& x) {
  return for_parts<F32x16>([&](int i) LOCKSTEP_LAMBDA { return (NativeF32)x.part[i]; });
}
template <int n>
LOCKSTEP_INLINE U32x16 shift_left(const U32x16& x) {
  return for_parts<U32x16>([&](int i) LOCKSTEP_LAMBDA { return x.part[i] << n; });
}
template <int n>
LOCKSTEP_INLINE U32x16 shift_right(const U32x16& x) {
  return for_parts<U32x16>([&](int i) LOCKSTEP_LAMBDA { return x.part[i] >> n; });
}

// mask ? a : b, lane by lane.
LOCKSTEP_INLINE F32x16 select(const U32x16& mask, const F32x16& a, const F32x16& b) {
  return for_parts<F32x16>([&](int i) LOCKSTEP_LAMBDA {
    return (NativeF32)((mask.part[i] & (NativeU32)a.part[i]) |
                       (~mask.part[i] & (NativeU32)b.part[i]));
  });
}
LOCKSTEP_INLINE U32x16 select(const U32x16& mask, const U32x16& a, const U32x16& b) {
  return (mask & a) |
         for_parts<U32x16>([&](int i) LOCKSTEP_LAMBDA { return ~mask.part[i] & b.part[i]; });
}

// a > b ? a : b and a < b ? a : b, as the x86 instructions: b where either is NaN.
LOCKSTEP_INLINE F32x16 max(const F32x16& a, const F32x16& b) {
  return for_parts<F32x16>([&](int i) LOCKSTEP_LAMBDA {
#if defined(__AVX512F__)
    return (NativeF32)_mm512_max_ps(a.part[i], b.part[i]);
#elif defined(__AVX2__)
    return (NativeF32)_mm256_max_ps(a.part[i], b.part[i]);
#else
    return (NativeF32)_mm_max_ps(a.part[i], b.part[i]);
#endif
  });
}
LOCKSTEP_INLINE F32x16 min(const F32x16& a, const F32x16& b) {
  return for_parts<F32x16>([&](int i) LOCKSTEP_LAMBDA {
#if defined(__AVX512F__)
    return (NativeF32)_mm512_min_ps(a.part[i], b.part[i]);
#elif defined(__AVX2__)
    return (NativeF32)_mm256_min_ps(a.part[i], b.part[i]);
#else
    return (NativeF32)_mm_min_ps(a.part[i], b.part[i]);
#endif
  });
}

LOCKSTEP_INLINE F32x16 sqrt(const F32x16& x) {
  return for_parts<F32x16>([&](int i) LOCKSTEP_LAMBDA {
#if defined(__AVX512F__)
    return (NativeF32)_mm512_sqrt_ps(x.part[i]);
#elif defined(__AVX2__)
    return (NativeF32)_mm256_sqrt_ps(x.part[i]);
#else
    return (NativeF32)_mm_sqrt_ps(x.part[i]);
#endif
  });
}

// a b + c: see the top of the file before using it.
LOCKSTEP_INLINE F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  return for_parts<F32x16>([&](int i) LOCKSTEP_LAMBDA {
#if defined(__AVX512F__)
    return (NativeF32)_mm512_fmadd_ps(a.part[i], b.part[i], c.part[i]);
#elif defined(__AVX2__)
    return (NativeF32)_mm256_fmadd_ps(a.part[i], b.part[i], c.part[i]);
#else
    return a.part[i] * b.part[i] + c.part[i];
#endif
  });
}

// ---- memory; no alignment is asked for ----

typedef NativeF32 UnalignedF32 __attribute__((aligned(4), may_alias));

LOCKSTEP_INLINE F32x16 load(const float* p) {
  return for_parts<F32x16>(
      [&](int i) LOCKSTEP_LAMBDA { return (NativeF32) * (const UnalignedF32*)(p + i * kNative); });
}
LOCKSTEP_INLINE void store(float* p, const F32x16& x) {
  *(UnalignedF32*)p = x.part[0];
  if constexpr (kParts > 1) *(UnalignedF32*)(p + kNative) = x.part[1];
  if constexpr (kParts > 2) *(UnalignedF32*)(p + 2 * kNative) = x.part[2];
  if constexpr (kParts > 2) *(UnalignedF32*)(p + 3 * kNative) = x.part[3];
}

// Past the caches, for what is read much later; p aligned to 64 bytes. Other threads may miss it
// until the writer's _mm_sfence().
LOCKSTEP_INLINE void stream(float* p, const F32x16& x) {
  for (int i = 0; i < kParts; ++i) {
#if defined(__AVX512F__)
    _mm512_stream_ps(p + i * kNative, x.part[i]);
#elif defined(__AVX2__)
    _mm256_stream_ps(p + i * kNative, x.part[i]);
#else
    _mm_stream_ps(p + i * kNative, x.part[i]);
#endif
  }
}

LOCKSTEP_INLINE F32x16 load(const bf16* p) {
#if defined(__AVX512F__)
  const __m256i half = _mm256_loadu_si256((const __m256i*)p);
  return F32x16{{(NativeF32)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16)}};
#elif defined(__AVX2__)
  const auto widen = [&](int i) LOCKSTEP_LAMBDA {
    const __m128i half = _mm_loadu_si128((const __m128i*)(p + i * kNative));
    return (NativeF32)_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
  };
  return for_parts<F32x16>(widen);
#else
  typedef std::uint16_t Half __attribute__((vector_size(16)));
  Half low, high;
  __builtin_memcpy(&low, p, 16);
  __builtin_memcpy(&high, p + 8, 16);
  const Half none{};
  return F32x16{{(NativeF32)__builtin_shufflevector(none, low, 0, 8, 0, 9, 0, 10, 0, 11),
                 (NativeF32)__builtin_shufflevector(none, low, 0, 12, 0, 13, 0, 14, 0, 15),
                 (NativeF32)__builtin_shufflevector(none, high, 0, 8, 0, 9, 0, 10, 0, 11),
                 (NativeF32)__builtin_shufflevector(none, high, 0, 12, 0, 13, 0, 14, 0, 15)}};
#endif
}

// The bits of to_bf16(x) (base/dtype.h) in the upper half of each lane; the lower half is junk.
// Integer arithmetic, since vcvtneps2bf16 flushes subnormals.
LOCKSTEP_INLINE U32x16 bf16_bits(const F32x16& x) {
  const U32x16 bits = bits_of(x);
  const U32x16 odd = shift_right<16>(bits) & splat_bits(1);
  const U32x16 rounded = bits + splat_bits(0x7fffU) + odd;
  const U32x16 quiet = splat_bits(0x400000U);
#if defined(__AVX512F__)
  const __mmask16 nan = _mm512_cmp_ps_mask(x.part[0], x.part[0], _CMP_UNORD_Q);
  return U32x16{{(NativeU32)_mm512_mask_or_epi32((__m512i)rounded.part[0], nan,
                                                 (__m512i)bits.part[0], (__m512i)quiet.part[0])}};
#else
  return select(not_equal(x, x), bits | quiet, rounded);
#endif
}
// x rounded to bf16, as a float.
LOCKSTEP_INLINE F32x16 round_bf16(const F32x16& x) {
  return from_bits(bf16_bits(x) & splat_bits(0xffff0000U));
}

LOCKSTEP_INLINE void store(bf16* p, const F32x16& x) {
  const U32x16 bits = bf16_bits(x);
#if defined(__AVX512F__)
  const __m512i high = _mm512_srli_epi32((__m512i)bits.part[0], 16);
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(high));
#elif defined(__AVX2__)
  const __m256i low = _mm256_srli_epi32((__m256i)bits.part[0], 16);
  const __m256i high = _mm256_srli_epi32((__m256i)bits.part[1], 16);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
  _mm256_storeu_si256((__m256i*)p, packed);
#else
  typedef std::uint16_t Half __attribute__((vector_size(16)));
  const Half low =
      __builtin_shufflevector((Half)bits.part[0], (Half)bits.part[1], 1, 3, 5, 7, 9, 11, 13, 15);
  const Half high =
      __builtin_shufflevector((Half)bits.part[2], (Half)bits.part[3], 1, 3, 5, 7, 9, 11, 13, 15);
  __builtin_memcpy(static_cast<void*>(p), &low, 16);
  __builtin_memcpy(static_cast<void*>(p + 8), &high, 16);
#endif
}

// Asks for the memory 4 KiB after p, which a kernel that streams from memory will read soon. One
// stream of plain loads reaches two thirds of what a core can read; this the rest (measured on
// Sapphire Rapids). Never faults, also past the end of an array.
template <class T>
LOCKSTEP_INLINE void fetch_ahead(const T* p) {
  _mm_prefetch((const char*)((std::uintptr_t)p + 4096), _MM_HINT_T0);
}

// The first n lanes, 0 < n <= 16; the others are zero. Touches no other memory.
template <class T>
LOCKSTEP_INLINE F32x16 load(const T* p, std::int64_t n) {
  T lanes[kLanes] = {};
  __builtin_memcpy(static_cast<void*>(lanes), p, static_cast<std::size_t>(n) * sizeof(T));
  return load(lanes);
}
template <class T>
LOCKSTEP_INLINE void store(T* p, const F32x16& x, std::int64_t n) {
  T lanes[kLanes];
  store(lanes, x);
  __builtin_memcpy(static_cast<void*>(p), lanes, static_cast<std::size_t>(n) * sizeof(T));
}

// Which lanes of a block count: all, or the first n.
struct All {};
struct First {
  std::int64_t n;
};
template <class T>
LOCKSTEP_INLINE F32x16 load(const T* p, All) {
  return load(p);
}
template <class T>
LOCKSTEP_INLINE F32x16 load(const T* p, First first) {
  return load(p, first.n);
}
template <class T>
LOCKSTEP_INLINE void store(T* p, const F32x16& x, All) {
  store(p, x);
}
template <class T>
LOCKSTEP_INLINE void store(T* p, const F32x16& x, First first) {
  store(p, x, first.n);
}

// f(i, lanes) for i = 0, 16, 32, ...; lanes is All, but First for what is left at the end.
template <class F>
LOCKSTEP_INLINE void for_lanes(std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, All{});
  if (i < n) f(i, First{n - i});
}

// ---- across lanes ----

LOCKSTEP_INLINE float first_lane(const F32x16& x) { return x.part[0][0]; }

struct Plus {
  template <class V>
  LOCKSTEP_INLINE V operator()(V a, V b) const {
    return a + b;
  }
};
struct Larger {
  LOCKSTEP_INLINE __m128 operator()(__m128 a, __m128 b) const { return _mm_max_ps(a, b); }
#if defined(__AVX2__)
  LOCKSTEP_INLINE __m256 operator()(__m256 a, __m256 b) const { return _mm256_max_ps(a, b); }
#endif
};

// Lane i with lane i + 8, then i + 4, i + 2, i + 1.
template <class F>
LOCKSTEP_INLINE float fold(const F32x16& x, const F& f) {
#if defined(__AVX2__)
#if defined(__AVX512F__)
  const __m256 eight = f(_mm512_castps512_ps256(x.part[0]), _mm512_extractf32x8_ps(x.part[0], 1));
#else
  const __m256 eight = f((__m256)x.part[0], (__m256)x.part[1]);
#endif
  const __m128 four = f(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#else
  const __m128 four =
      f(f((__m128)x.part[0], (__m128)x.part[2]), f((__m128)x.part[1], (__m128)x.part[3]));
#endif
  const __m128 two = f(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(f(two, _mm_shuffle_ps(two, two, 1)));
}
LOCKSTEP_INLINE float hsum(const F32x16& x) { return fold(x, Plus{}); }
LOCKSTEP_INLINE float hmax(const F32x16& x) { return fold(x, Larger{}); }

// The sum of term(i, lanes) over n elements: four running sums of 16 lanes, block after block in
// turn, (0 + 1) + (2 + 3), then hsum. The order is a function of n alone.
template <class F>
LOCKSTEP_INLINE float sum_lanes(std::int64_t n, const F& term) {
  F32x16 sum0{}, sum1{}, sum2{}, sum3{};
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    sum0 = sum0 + term(i, All{});
    sum1 = sum1 + term(i + kLanes, All{});
    sum2 = sum2 + term(i + 2 * kLanes, All{});
    sum3 = sum3 + term(i + 3 * kLanes, All{});
  }
  for (; i + kLanes <= n; i += kLanes) sum0 = sum0 + term(i, All{});
  if (i < n) sum1 = sum1 + term(i, First{n - i});
  return hsum((sum0 + sum1) + (sum2 + sum3));
}

// ---- double precision sums ----

LOCKSTEP_INLINE F64x16 widen(const F32x16& x) {
#if defined(__AVX512F__)
  return {{(NativeF64)_mm512_cvtps_pd(_mm512_castps512_ps256(x.part[0])),
           (NativeF64)_mm512_cvtps_pd(_mm512_extractf32x8_ps(x.part[0], 1))}};
#elif defined(__AVX2__)
  return for_parts<F64x16>([&](int i) LOCKSTEP_LAMBDA {
    const __m256 part = x.part[i / 2];
    return (NativeF64)_mm256_cvtps_pd(i % 2 == 0 ? _mm256_castps256_ps128(part)
                                                 : _mm256_extractf128_ps(part, 1));
  });
#else
  return for_parts<F64x16>([&](int i) LOCKSTEP_LAMBDA {
    const __m128 part = x.part[i / 2];
    return (NativeF64)_mm_cvtps_pd(i % 2 == 0 ? part : _mm_movehl_ps(part, part));
  });
#endif
}
LOCKSTEP_INLINE double hsum(const F64x16& x) {
#if defined(__AVX2__)
#if defined(__AVX512F__)
  const __m512d eight = x.part[0] + x.part[1];
  const __m256d four = _mm512_castpd512_pd256(eight) + _mm512_extractf64x4_pd(eight, 1);
#else
  const __m256d four = (x.part[0] + x.part[2]) + (x.part[1] + x.part[3]);
#endif
  const __m128d two = _mm256_castpd256_pd128(four) + _mm256_extractf128_pd(four, 1);
#else
  const __m128d two = ((x.part[0] + x.part[4]) + (x.part[2] + x.part[6])) +
                      ((x.part[1] + x.part[5]) + (x.part[3] + x.part[7]));
#endif
  return two[0] + two[1];
}

// ---- functions ----

// e^x within 2 units in the last place over the whole range, subnormal results included; 0 and
// infinity past the ends, NaN for NaN. x = n ln 2 + r with ln 2 in two parts whose first makes
// n * part exact (Cody & Waite 1980); e^r by a polynomial; 2^n as two factors, so that the
// intermediate product is exact also where the result is subnormal.
LOCKSTEP_INLINE F32x16 exp(const F32x16& x) {
  // NaN stays: each of these takes its second operand when one is NaN.
  const F32x16 clamped = max(splat(-104.0F), min(splat(89.0F), x));
  const F32x16 shift = splat(12582912.0F);  // 1.5 * 2^23: adding it rounds to an integer
  const F32x16 shifted = clamped * splat(1.44269504F) + shift;
  const F32x16 n = shifted - shift;
  const F32x16 r = (clamped - n * splat(0.693359375F)) + n * splat(2.12194440e-4F);
  F32x16 p = splat(1.9875691500e-4F);
  p = p * r + splat(1.3981999507e-3F);
  p = p * r + splat(8.3334519073e-3F);
  p = p * r + splat(4.1665795894e-2F);
  p = p * r + splat(1.6666665459e-1F);
  p = p * r + splat(5.0000001201e-1F);
  const F32x16 y = (p * (r * r) + r) + splat(1.0F);
#if defined(__AVX512F__)
  return F32x16{{(NativeF32)_mm512_scalef_ps(y.part[0], n.part[0])}};  // the same bits
#else
  // n is the low bits of `shifted`; the factors are 2^floor(n/2) and 2^(n - floor(n/2)).
  const U32x16 whole = bits_of(shifted) - splat_bits(0x4b400000U);
  const U32x16 half = shift_right<1>(whole + splat_bits(256)) - splat_bits(128);
  const U32x16 one = splat_bits(127);
  const F32x16 first = from_bits(shift_left<23>(half + one));
  const F32x16 second = from_bits(shift_left<23>((whole - half) + one));
  return (y * first) * second;
#endif
}

// 1 / (1 + e^-x).
LOCKSTEP_INLINE F32x16 sigmoid(const F32x16& x) {
  const F32x16 one = splat(1.0F);
  return one / (one + exp(zero() - x));
}

// x / (1 + e^-x).
LOCKSTEP_INLINE F32x16 silu(const F32x16& x) { return x / (splat(1.0F) + exp(zero() - x)); }

}  // namespace lockstep::ops::LOCKSTEP_ISA
