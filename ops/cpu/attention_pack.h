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
