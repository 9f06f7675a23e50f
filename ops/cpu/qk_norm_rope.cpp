#include "ops/qk_norm_rope.h"

#include "ops/cpu/qk_norm_rope_kernels.h"
#include "ops/cpu/rows.h"

namespace lockstep::ops {
namespace {

const QkNormRopeKernels& kernels_of(const CpuStream& stream) {
  return *by_isa(stream.isa(), &portable::qk_norm_rope_kernels, &avx2::qk_norm_rope_kernels,
                 &avx512::qk_norm_rope_kernels, &avx512::qk_norm_rope_kernels);
}

BatchedRows rows_of(const View& view) { return {view.stride(0), view.stride(1)}; }

}  // namespace

void enqueue(CpuStream& stream, const QkNormRopeForward& op) {
  const std::int64_t half = op.cos.dim(1);
  const QkNormRopeForwardRows rows = {.y = op.y.raw(),
                                      .y_rows = rows_of(op.y),
                                      .rstd = op.rstd.data<float>(),
                                      .x = op.x.raw(),
                                      .x_rows = rows_of(op.x),
                                      .weight = op.weight.data<float>(),
                                      .cos = op.cos.data<float>() + op.first_position * half,
                                      .sin = op.sin.data<float>() + op.first_position * half,
                                      .positions = op.x.dim(1),
                                      .width = op.x.dim(2),
                                      .half = half,
                                      .eps = op.eps};
  const auto kernel = kernels_of(stream).forward[is_bf16(op.y)][is_bf16(op.x)];
  for_row_pieces(stream, op.rstd.dim(0), rows.width,
                 [&](std::int64_t begin, std::int64_t end) { kernel(rows, begin, end); });
}

void enqueue(CpuStream& stream, const QkNormRopeBackward& op) {
  const std::int64_t half = op.cos.dim(1);
  const QkNormRopeBackwardRows rows = {.dx = op.dx.raw(),
                                       .dx_rows = rows_of(op.dx),
                                       .dy = op.dy.raw(),
                                       .dy_rows = rows_of(op.dy),
                                       .x = op.x.raw(),
                                       .x_rows = rows_of(op.x),
                                       .rstd = op.rstd.data<float>(),
                                       .weight = op.weight.data<float>(),
                                       .cos = op.cos.data<float>() + op.first_position * half,
                                       .sin = op.sin.data<float>() + op.first_position * half,
                                       .positions = op.x.dim(1),
                                       .width = op.x.dim(2),
                                       .half = half};
  const auto kernel = kernels_of(stream).backward[is_bf16(op.dx)][is_bf16(op.dy)][is_bf16(op.x)];
  sum_over_row_chunks(stream, op.dweight.data<float>(), op.accumulate, op.rstd.dim(0), rows.width,
                      [&](float* dweight, std::int64_t begin, std::int64_t end) {
                        kernel(rows, dweight, begin, end);
                      });
}

}  // namespace lockstep::ops
