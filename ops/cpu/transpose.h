#pragma once

#include "ops/cpu/simd.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKSTEP_SANITIZED \
  1  // with a check at every access, unrolled loops take minutes to compile
#define LOCKSTEP_UNROLL
#elif defined(__clang__)
#define LOCKSTEP_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LOCKSTEP_UNROLL _Pragma("GCC unroll 48")
#endif

namespace lockstep::ops::LOCKSTEP_ISA {

// 16 rows of 16 words in place: word j of x[i] becomes word i of x[j].
#if defined(__AVX512F__)
LOCKSTEP_INLINE void transpose(U32x16 (&x)[16]) {
  __m512i s[16], t[16];
  LOCKSTEP_UNROLL
  for (int i = 0; i < 16; i += 2) {
    s[i] = _mm512_unpacklo_epi32((__m512i)x[i].part[0], (__m512i)x[i + 1].part[0]);
    s[i + 1] = _mm512_unpackhi_epi32((__m512i)x[i].part[0], (__m512i)x[i + 1].part[0]);
  }
  LOCKSTEP_UNROLL
  for (int i = 0; i < 16; i += 4) {
    t[i] = _mm512_unpacklo_epi64(s[i], s[i + 2]);
    t[i + 1] = _mm512_unpackhi_epi64(s[i], s[i + 2]);
    t[i + 2] = _mm512_unpacklo_epi64(s[i + 1], s[i + 3]);
    t[i + 3] = _mm512_unpackhi_epi64(s[i + 1], s[i + 3]);
  }
  // t[4 g + c] holds columns c, c + 4, c + 8, c + 12 of rows 4 g to 4 g + 3.
  LOCKSTEP_UNROLL
  for (int c = 0; c < 4; ++c) {
    const __m512i low01 = _mm512_shuffle_i32x4(t[c], t[c + 4], 0x88);
    const __m512i high01 = _mm512_shuffle_i32x4(t[c], t[c + 4], 0xdd);
    const __m512i low23 = _mm512_shuffle_i32x4(t[c + 8], t[c + 12], 0x88);
    const __m512i high23 = _mm512_shuffle_i32x4(t[c + 8], t[c + 12], 0xdd);
    x[c].part[0] = (NativeU32)_mm512_shuffle_i32x4(low01, low23, 0x88);
    x[c + 8].part[0] = (NativeU32)_mm512_shuffle_i32x4(low01, low23, 0xdd);
    x[c + 4].part[0] = (NativeU32)_mm512_shuffle_i32x4(high01, high23, 0x88);
    x[c + 12].part[0] = (NativeU32)_mm512_shuffle_i32x4(high01, high23, 0xdd);
  }
}
#else
// A square of 4 x 4 words at row r, columns c to c + 3, at a time.
LOCKSTEP_INLINE void transpose(U32x16 (&x)[16]) {
  std::uint32_t in[16][16];
  __builtin_memcpy(in, x, sizeof(in));
  typedef std::uint32_t Quad __attribute__((vector_size(16)));
  std::uint32_t out[16][16];
  for (int r = 0; r < 16; r += 4) {
    for (int c = 0; c < 16; c += 4) {
      Quad q[4];
      for (int i = 0; i < 4; ++i) __builtin_memcpy(&q[i], &in[r + i][c], 16);
      const Quad a = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5);
      const Quad b = __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7);
      const Quad d = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5);
      const Quad e = __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
      const Quad t[4] = {
          __builtin_shufflevector(a, d, 0, 1, 4, 5), __builtin_shufflevector(a, d, 2, 3, 6, 7),
          __builtin_shufflevector(b, e, 0, 1, 4, 5), __builtin_shufflevector(b, e, 2, 3, 6, 7)};
      for (int i = 0; i < 4; ++i) __builtin_memcpy(&out[c + i][r], &t[i], 16);
    }
  }
  __builtin_memcpy(x, out, sizeof(out));
}
#endif

LOCKSTEP_INLINE void transpose(F32x16 (&x)[16]) {
  U32x16 words[16];
  LOCKSTEP_UNROLL
  for (int i = 0; i < 16; ++i) words[i] = bits_of(x[i]);
  transpose(words);
  LOCKSTEP_UNROLL
  for (int i = 0; i < 16; ++i) x[i] = from_bits(words[i]);
}

}  // namespace lockstep::ops::LOCKSTEP_ISA
