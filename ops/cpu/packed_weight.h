#pragma once

#include "ops/packed_weight.h"
#include "tensor/stream.h"

namespace lockstep::ops {

// kBug unless the weight was packed for the stream's kernels.
void require_isa(CpuStream& stream, const PackedWeight& w);

// Writes both layouts of w (out, in), some rows at a time, on all threads: ready(begin, end) is
// called with the elements of the master `weight` of those rows just before they are read.
template <class Ready>
void pack_weight(CpuStream& stream, const PackedWeight& w, const float* weight, const Ready& ready);

// The rows [row, row + rows) of the master into both layouts; the row a multiple of rows_at_once.
void pack_rows(const PackedWeight& w, const float* weight, std::int64_t row, std::int64_t rows);
[[nodiscard]] std::int64_t rows_at_once(const PackedWeight& w);

template <class Ready>
void pack_weight(CpuStream& stream, const PackedWeight& w, const float* weight,
                 const Ready& ready) {
  require_isa(stream, w);
  const std::int64_t unit = rows_at_once(w);
  stream.pool().parallel_for((w.out() + unit - 1) / unit, [&](std::int64_t i, int) {
    const std::int64_t row = i * unit;
    const std::int64_t rows = unit < w.out() - row ? unit : w.out() - row;
    ready(row * w.in(), (row + rows) * w.in());
    pack_rows(w, weight, row, rows);
  });
}

}  // namespace lockstep::ops
