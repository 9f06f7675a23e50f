#pragma once

// Layouts of the attention kernels' operands, and the ways into and out of them. Rows are given as
// an array of pointers; a null row is a row of zeros, and so is everything past `dim`. With E
// elements a unit:
//   panel   [unit of a row][lane]            rows are lanes, the sum runs along a row
//   strips  [row / 8][unit of a row][row % 8] rows are splatted, the sum runs along a row
//   depth   [row / E][column]                the sum runs over rows

#include "ops/cpu/attention_vector.h"

namespace lockstep::ops::LOCKSTEP_ISA {

[[nodiscard]] LOCKSTEP_INLINE std::int64_t units_of(std::int64_t dim, int elements) {
  return (dim + elements - 1) / elements;
}

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
// A square of 4 x 4 units at row r, columns 4 c to 4 c + 3.
LOCKSTEP_INLINE void transpose(U32x16 (&x)[16]) {
  Unit in[16][16];
  __builtin_memcpy(in, x, sizeof(in));
  typedef Unit Quad __attribute__((vector_size(16)));
  Unit out[16][16];
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

// 16 units of a row from unit u.
template <class Units, class T>
LOCKSTEP_INLINE U32x16 row_units(const T* row, std::int64_t u, std::int64_t dim) {
  if (row == nullptr) return splat_bits(0);
  const std::int64_t first = u * Units::kElements;
  const std::int64_t left = dim - first;
  if constexpr (Units::kElements == 1) {
    return bits_of(left >= kLanes ? load(row + first) : load(row + first, left));
  } else {
    U32x16 x = splat_bits(0);
    if (left >= 2 * kLanes) {
      __builtin_memcpy(&x, row + first, sizeof(x));
    } else {
      Unit units[kLanes] = {};
      __builtin_memcpy(units, row + first, static_cast<std::size_t>(left) * sizeof(T));
      x = load_units(units);
    }
    return x;
  }
}

// 16 elements of a row from column d, as f32.
template <class T>
LOCKSTEP_INLINE F32x16 row_values(const T* row, std::int64_t d, std::int64_t dim) {
  if (row == nullptr || d >= dim) return zero();
  return dim - d >= kLanes ? load(row + d) : load(row + d, dim - d);
}

// 16 units of 16 rows from unit u, transposed: x[i] holds unit u + i of each row.
template <class Units, class T>
LOCKSTEP_INLINE void row_square(U32x16 (&x)[16], const T* const* rows, std::int64_t u,
                                std::int64_t dim) {
  bool is_whole = dim - u * Units::kElements >= kLanes * Units::kElements;
  for (int i = 0; i < 16; ++i) is_whole = is_whole && rows[i] != nullptr;
  if (is_whole) {
    LOCKSTEP_UNROLL
    for (int i = 0; i < 16; ++i) {
      const T* from = rows[i] + u * Units::kElements;
      if constexpr (Units::kElements == 1) {
        x[i] = bits_of(load(from));
      } else {
        __builtin_memcpy(&x[i], from, sizeof(x[i]));
      }
    }
  } else {
    for (int i = 0; i < 16; ++i) x[i] = row_units<Units>(rows[i], u, dim);
  }
  transpose(x);
}

// The 16 lanes from `lane` of a panel that is `lanes` wide.
template <class Units, class T>
void pack_panel(Unit* panel, std::int64_t lanes, std::int64_t lane, const T* const* rows,
                std::int64_t dim) {
  const std::int64_t units = units_of(dim, Units::kElements);
  for (std::int64_t u = 0; u < units; u += kLanes) {
    U32x16 x[16];
    row_square<Units>(x, rows + lane, u, dim);
    LOCKSTEP_UNROLL
    for (std::int64_t i = 0; i < kLanes; ++i) {
      if (u + i == units) break;
      store_units(panel + (u + i) * lanes + lane, x[i]);
    }
  }
}

template <class Units, class T>
void pack_strips(Unit* strips, const T* const* rows, std::int64_t count, std::int64_t dim) {
  const std::int64_t units = units_of(dim, Units::kElements);
  for (std::int64_t row = 0; row < count; row += kLanes) {
    Unit* low = strips + row * units;
    Unit* high = low + kStrip * units;
    for (std::int64_t u = 0; u < units; u += kLanes) {
      U32x16 x[16];
      row_square<Units>(x, rows + row, u, dim);
      LOCKSTEP_UNROLL
      for (std::int64_t i = 0; i < kLanes; ++i) {
        if (u + i == units) break;
        const auto* lanes = (const char*)&x[i];
        __builtin_memcpy(low + (u + i) * kStrip, lanes, kStrip * sizeof(Unit));
        __builtin_memcpy(high + (u + i) * kStrip, lanes + kStrip * sizeof(Unit),
                         kStrip * sizeof(Unit));
      }
    }
  }
}

// `columns` is dim rounded up to 16.
template <class Units, class T>
void pack_depth(Unit* depth, std::int64_t columns, const T* const* rows, std::int64_t count,
                std::int64_t dim) {
  for (std::int64_t row = 0; row < count; row += Units::kElements) {
    for (std::int64_t d = 0; d < columns; d += kLanes) {
      U32x16 x = bits_of(row_values(rows[row], d, dim));
      if constexpr (Units::kElements == 2) {
        x = shift_right<16>(x) | bits_of(row_values(rows[row + 1], d, dim));
      }
      store_units(depth, x);
      depth += kLanes;
    }
  }
}

// The 16 lanes from `lane` of values [column][lane], times a factor a lane, to rows; null rows are
// left out. Adding zero makes a negative zero, which an empty block may or may not have turned into
// a positive one, positive.
template <class T>
void store_rows(T* const* rows, const float* values, std::int64_t lanes, std::int64_t lane,
                const F32x16& factor, std::int64_t dim) {
  for (std::int64_t d = 0; d < dim; d += kLanes) {
    U32x16 x[16];
    LOCKSTEP_UNROLL
    for (std::int64_t i = 0; i < kLanes; ++i) {
      x[i] = bits_of(load(values + (d + i) * lanes + lane) * factor + zero());
    }
    transpose(x);
    LOCKSTEP_UNROLL
    for (int i = 0; i < 16; ++i) {
      T* row = rows[lane + i];
      if (row == nullptr) continue;
      if (dim - d >= kLanes) {
        store(row + d, from_bits(x[i]));
      } else {
        store(row + d, from_bits(x[i]), dim - d);
      }
    }
  }
}

}  // namespace lockstep::ops::LOCKSTEP_ISA
