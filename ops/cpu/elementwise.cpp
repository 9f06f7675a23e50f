#include "ops/elementwise.h"

#include <cstring>

#include "ops/cpu/rows.h"

namespace lockstep::ops {
namespace {

constexpr std::int64_t kSumChunk = 65536;

// Element offset of row r, rows being all dims but the last.
std::int64_t row_offset(const View& view, std::int64_t row) {
  std::int64_t offset = 0;
  for (int i = view.rank() - 2; i >= 0; --i) {
    offset += row % view.dim(i) * view.stride(i);
    row /= view.dim(i);
  }
  return offset;
}

void convert(const ElementwiseKernels& kernels, const View& y, std::int64_t y_at, const View& x,
             std::int64_t x_at, std::int64_t n) {
  if (y.dtype() == DType::kBF16 && x.dtype() == DType::kF32) {
    kernels.round(y.data<bf16>() + y_at, x.data<float>() + x_at, n);
  } else if (y.dtype() == DType::kF32 && x.dtype() == DType::kBF16) {
    kernels.widen(y.data<float>() + y_at, x.data<bf16>() + x_at, n);
  } else {
    const auto width = static_cast<std::int64_t>(size_of(y.dtype()));
    std::memcpy(static_cast<char*>(y.raw()) + y_at * width,
                static_cast<const char*>(x.raw()) + x_at * width,
                static_cast<std::size_t>(n * width));
  }
}

}  // namespace

void enqueue(CpuStream& stream, const Add& op) {
  const ElementwiseKernels& kernels = elementwise_kernels(stream.isa());
  auto* y = op.y.data<float>();
  const auto* a = op.a.data<float>();
  const auto* b = op.b.data<float>();
  for_pieces(stream, op.y.size(), kPieceElements, [&](std::int64_t begin, std::int64_t end) {
    kernels.add(y + begin, a + begin, b + begin, end - begin);
  });
}

void enqueue(CpuStream& stream, const Cast& op) {
  const ElementwiseKernels& kernels = elementwise_kernels(stream.isa());
  if (op.y.contiguous() && op.x.contiguous()) {
    for_pieces(stream, op.y.size(), kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      convert(kernels, op.y, begin, op.x, begin, end - begin);
    });
    return;
  }
  const std::int64_t width = op.y.dim(op.y.rank() - 1);
  for_row_pieces(stream, op.y.size() / width, width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      convert(kernels, op.y, row_offset(op.y, row), op.x, row_offset(op.x, row), width);
    }
  });
}

void enqueue(CpuStream& stream, const SumOfSquares& op) {
  const ElementwiseKernels& kernels = elementwise_kernels(stream.isa());
  const auto* x = op.x.data<float>();
  const std::int64_t chunks = (op.x.size() + kSumChunk - 1) / kSumChunk;
  auto* partials =
      static_cast<double*>(stream.scratch(chunks * static_cast<std::int64_t>(sizeof(double))));
  for_pieces(stream, op.x.size(), kSumChunk, [&](std::int64_t begin, std::int64_t end) {
    partials[begin / kSumChunk] = kernels.sum_of_squares(x + begin, end - begin);
  });
  double sum = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += partials[chunk];
  *op.sum = sum;
}

}  // namespace lockstep::ops
