#pragma once

#include "ops/cpu/transpose.h"

// The register tile of gemm_kernel.cpp and the layouts that it reads: panels of B and of A,
// described in gemm_kernel.h.
namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

// The register tile, rows x vectors of 16 columns. AVX-512: 24 accumulators, 3 of B and one of A
// in 32 registers; 11 loads for 24 multiply-adds. AVX2: 12 + 2 + 1 of 16 (a vector of 16 lanes is
// two registers). SSE2: 8 + 4 + 1.
#if defined(__AVX512F__)
constexpr int kRows = 8;
constexpr int kVectors = 3;
#elif defined(__AVX2__)
constexpr int kRows = 6;
constexpr int kVectors = 1;
#else
constexpr int kRows = 2;
constexpr int kVectors = 1;
#endif
constexpr int kPanel = kVectors * kLanes;

// Whether panels of A hold pairs of bf16, as vdpbf16ps wants them, or widened elements.
#if defined(__AVX512BF16__)
constexpr bool kPairsOfBf16 = true;
#else
constexpr bool kPairsOfBf16 = false;
#endif

inline std::int64_t width_of(std::int64_t cols) { return (cols + kLanes - 1) / kLanes * kLanes; }

LOCKSTEP_INLINE F32x16 load_some(const float* p, std::int64_t n) {
  return n >= kLanes ? load(p) : load(p, n);
}
LOCKSTEP_INLINE F32x16 load_some(const bf16* p, std::int64_t n) {
  return n >= kLanes ? load(p) : load(p, n);
}

// Rows of a matrix to fetch ahead: they lie too far apart for the processor to guess them.
constexpr std::int64_t kRowsAhead = 6;

template <class T>
LOCKSTEP_INLINE void fetch_row(const T* row, std::int64_t cols) {
  const auto* bytes = reinterpret_cast<const char*>(row);
  const std::int64_t count = cols * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t at = 0; at < count; at += 64) __builtin_prefetch(bytes + at, 0, 3);
}

template <class T>
void pack_b_lines(float* out, const T* x, std::int64_t stride, std::int64_t k, std::int64_t cols) {
  for (std::int64_t i = 0; i < k; ++i) {
    fetch_row(x + (i + kRowsAhead) * stride, cols);
    for (std::int64_t c = 0; c < cols; c += kLanes) {
      store(out, load_some(x + i * stride + c, cols - c));
      out += kLanes;
    }
  }
}

inline void pack_b_f32(float* out, const float* x, std::int64_t stride, std::int64_t k,
                       std::int64_t cols) {
  pack_b_lines(out, x, stride, k, cols);
}

inline void pack_b_widening(float* out, const bf16* x, std::int64_t stride, std::int64_t k,
                            std::int64_t cols) {
  pack_b_lines(out, x, stride, k, cols);
}

// Rows k and k + 1 as pairs, the even element in the lower half. What comes from f32 is a weight:
// it is rounded, and streamed.
template <class From>
LOCKSTEP_INLINE void store_pairs(bf16* out, const F32x16& even, const F32x16& odd) {
  auto* to = reinterpret_cast<float*>(out);
  if constexpr (sizeof(From) == 2) {
    store(to, from_bits(shift_right<16>(bits_of(even)) | bits_of(odd)));
  } else {
    stream(to, from_bits(shift_right<16>(bf16_bits(even)) |
                         (bf16_bits(odd) & splat_bits(0xffff0000U))));
  }
}

template <class T>
LOCKSTEP_INLINE void pack_b_pairs(bf16* out, const T* x, std::int64_t stride, std::int64_t k,
                                  std::int64_t cols) {
  for (std::int64_t i = 0; i < k; i += 2) {
    const T* row = x + i * stride;
    fetch_row(row + kRowsAhead * stride, cols);
    fetch_row(row + (kRowsAhead + 1) * stride, cols);
    for (std::int64_t c = 0; c < cols; c += kLanes) {
      const F32x16 odd = i + 1 < k ? load_some(row + stride + c, cols - c) : zero();
      store_pairs<T>(out, load_some(row + c, cols - c), odd);
      out += 2 * kLanes;
    }
  }
}

inline void pack_b_bf16(bf16* out, const bf16* x, std::int64_t stride, std::int64_t k,
                        std::int64_t cols) {
  pack_b_pairs(out, x, stride, k, cols);
}

inline void pack_b_rounding(bf16* out, const float* x, std::int64_t stride, std::int64_t k,
                            std::int64_t cols) {
  pack_b_pairs(out, x, stride, k, cols);
}

// 16 columns and 16 steps of k at a time, transposed: f(c, i, x) for x[j] the columns [c, c + 16)
// of step i + j, zeros past the ends.
template <class F>
LOCKSTEP_INLINE void for_squares(const float* x, std::int64_t stride, std::int64_t k,
                                 std::int64_t cols, const F& f) {
  for (std::int64_t c = 0; c < cols; c += kLanes) {
    for (std::int64_t i = 0; i < k; i += kLanes) {
      F32x16 square[kLanes];
      LOCKSTEP_UNROLL
      for (std::int64_t j = 0; j < kLanes; ++j) {
        square[j] = c + j < cols ? load_some(x + (c + j) * stride + i, k - i) : zero();
      }
      transpose(square);
      f(c, i, square);
    }
  }
}

inline void pack_bt_f32(float* out, const float* x, std::int64_t stride, std::int64_t k,
                        std::int64_t cols) {
  const std::int64_t width = width_of(cols);
  const auto write = [&](std::int64_t c, std::int64_t i, const F32x16(&square)[kLanes])
                         LOCKSTEP_LAMBDA {
                           LOCKSTEP_UNROLL
                           for (std::int64_t j = 0; j < kLanes; ++j) {
                             if (i + j < k) stream(out + (i + j) * width + c, square[j]);
                           }
                         };
  for_squares(x, stride, k, cols, write);
}

inline void pack_bt_rounding(bf16* out, const float* x, std::int64_t stride, std::int64_t k,
                             std::int64_t cols) {
  const std::int64_t width = width_of(cols);
  const auto write = [&](std::int64_t c, std::int64_t i,
                         const F32x16(&square)[kLanes]) LOCKSTEP_LAMBDA {
    LOCKSTEP_UNROLL
    for (std::int64_t j = 0; j < kLanes; j += 2) {
      if (i + j >= k) continue;
      store_pairs<float>(out + (i + j) * width + 2 * c, square[j], square[j + 1]);
    }
  };
  for_squares(x, stride, k, cols, write);
}

// 16 words as one row of each of the panels that begin `apart` words after one another.
LOCKSTEP_INLINE void store_words(std::uint32_t* to, const U32x16& words, std::int64_t apart,
                                 std::int64_t panels) {
#if defined(__AVX512F__)
  const auto all = (__m512i)words.part[0];
  _mm256_storeu_si256((__m256i*)to, _mm512_castsi512_si256(all));
  if (panels > 1) {
    _mm256_storeu_si256((__m256i*)(to + apart), _mm512_extracti64x4_epi64(all, 1));
  }
#else
  std::uint32_t lanes[kLanes];
  __builtin_memcpy(lanes, &words, sizeof(words));
  for (std::int64_t p = 0; p < kLanes / kRows && p < panels; ++p) {
    __builtin_memcpy(to + p * apart, lanes + p * kRows, kRows * sizeof(*lanes));
  }
#endif
}

// Panels of A, of words of 32 bits, f32 or pairs of bf16, that begin `panel` words after one
// another. Several panels come from one vector of a row of x. line(i, r, put): calls put(word,
// lanes) for what step i of k makes of x[i, r:].
template <class T, class Line>
LOCKSTEP_INLINE void pack_a(std::uint32_t* out, std::int64_t panel, const T* x, std::int64_t stride,
                            std::int64_t k, std::int64_t step, std::int64_t rows,
                            const Line& line) {
  constexpr std::int64_t kPanels = kLanes / kRows;
  for (std::int64_t i = 0; i < k; i += step) {
    for (std::int64_t j = i; j < i + step; ++j) fetch_row(x + (j + kRowsAhead) * stride, rows);
    for (std::int64_t r = 0; r < rows; r += kPanels * kRows) {
      const std::int64_t panels = (rows - r + kRows - 1) / kRows;
      std::uint32_t* to = out + r / kRows * panel;
      line(i, r, [&](std::int64_t word, const U32x16& words) {
        store_words(to + word * kRows, words, panel, panels);
      });
    }
  }
}

inline void pack_a_f32(float* out, std::int64_t panel, const float* x, std::int64_t stride,
                       std::int64_t k, std::int64_t rows) {
  pack_a(reinterpret_cast<std::uint32_t*>(out), panel, x, stride, k, 1, rows,
         [&](std::int64_t i, std::int64_t r, const auto& put) {
           put(i, bits_of(load_some(x + i * stride + r, rows - r)));
         });
}

inline void pack_a_bf16(void* out, std::int64_t panel, const bf16* x, std::int64_t stride,
                        std::int64_t k, std::int64_t rows) {
  pack_a(static_cast<std::uint32_t*>(out), panel, x, stride, k, 2, rows,
         [&](std::int64_t i, std::int64_t r, const auto& put) {
           const bf16* at = x + i * stride + r;
           const F32x16 even = load_some(at, rows - r);
           const F32x16 odd = i + 1 < k ? load_some(at + stride, rows - r) : zero();
           if constexpr (kPairsOfBf16) {
             put(i / 2, shift_right<16>(bits_of(even)) | bits_of(odd));
           } else {
             put(i, bits_of(even));
             put(i + 1, bits_of(odd));
           }
         });
}

inline std::uint32_t bits_at(const bf16* x) { return x->bits; }

inline void widen_rows(float* out, std::int64_t out_stride, const bf16* x, std::int64_t stride,
                       std::int64_t rows, std::int64_t k) {
  for (std::int64_t r = 0; r < rows; ++r) {
    float* line = out + r * out_stride;
    const bf16* from = x + r * stride;
    std::int64_t i = 0;
    for (; i + kLanes <= k; i += kLanes) store(line + i, load(from + i));
    for (; i < k; ++i) line[i] = __builtin_bit_cast(float, bits_at(from + i) << 16U);
    if (k % 2 != 0) line[k] = 0;
  }
}

}  // namespace
}  // namespace lockstep::ops::LOCKSTEP_ISA
