#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/accumulate.h"
#include "ops/cpu/elementwise_kernels.h"
#include "tensor/stream.h"
#include "tensor/view.h"

// How element-wise and row-wise ops are cut into pieces. A cut is a function of the shape alone.
namespace lockstep::ops {

// 1 for bf16, 0 for f32: the index of kernel tables.
[[nodiscard]] inline std::size_t is_bf16(const View& view) {
  return view.dtype() == DType::kBF16 ? 1 : 0;
}

// Elements that one piece covers: small enough to spread, big enough to hide the hand-out.
inline constexpr std::int64_t kPieceElements = 16384;

// task(begin, end) over [0, n) in pieces of `piece`, on the stream's threads.
template <class Task>
void for_pieces(CpuStream& stream, std::int64_t n, std::int64_t piece, const Task& task) {
  stream.pool().parallel_for((n + piece - 1) / piece, [&](std::int64_t index, int) {
    task(index * piece, std::min(n, (index + 1) * piece));
  });
}

// task(first_row, end_row) over `rows` rows of `width` elements.
template <class Task>
void for_row_pieces(CpuStream& stream, std::int64_t rows, std::int64_t width, const Task& task) {
  for_pieces(stream, rows, std::max<std::int64_t>(1, kPieceElements / width), task);
}

// A sum over rows: fixed chunks of rows, at most 256 of them, each summed in order into a row of
// scratch by task(partial, first_row, end_row) (partial arrives zeroed), then the chunks in order,
// into `sum` or, a sum complete, onto what it holds.
template <class Task>
void sum_over_row_chunks(CpuStream& stream, float* sum, Accumulate accumulate, std::int64_t rows,
                         std::int64_t width, const Task& task) {
  const std::int64_t chunk = std::max<std::int64_t>(32, (rows + 255) / 256);
  const std::int64_t chunks = (rows + chunk - 1) / chunk;
  const std::int64_t stride = (width + 15) / 16 * 16;
  auto* partials = static_cast<float*>(stream.scratch(chunks * stride * 4));
  for_pieces(stream, rows, chunk, [&](std::int64_t begin, std::int64_t end) {
    float* partial = partials + begin / chunk * stride;
    std::fill_n(partial, width, 0.0F);
    task(partial, begin, end);
  });
  const ElementwiseKernels& kernels = elementwise_kernels(stream.isa());
  for_pieces(stream, width, 256, [&](std::int64_t begin, std::int64_t end) {
    const bool adds = accumulate == Accumulate::kAdd;
    float* to = adds ? partials + begin : sum + begin;
    kernels.sum_rows(to, partials + begin, chunks, stride, end - begin);
    if (adds) kernels.add(sum + begin, sum + begin, to, end - begin);
  });
}

}  // namespace lockstep::ops
