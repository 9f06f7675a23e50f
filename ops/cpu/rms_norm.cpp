#include "ops/rms_norm.h"

#include "ops/cpu/rms_norm_kernels.h"
#include "ops/cpu/rows.h"

namespace lockstep::ops {
namespace {

const RmsNormKernels& kernels_of(const CpuStream& stream) {
  return *by_isa(stream.isa(), &portable::rms_norm_kernels, &avx2::rms_norm_kernels,
                 &avx512::rms_norm_kernels, &avx512::rms_norm_kernels);
}

}  // namespace

void enqueue(CpuStream& stream, const RmsNormForward& op) {
  const RmsNormForwardRows rows = {.y = op.y.raw(),
                                   .rstd = op.rstd.data<float>(),
                                   .x = op.x.raw(),
                                   .x_stride = op.x.stride(0),
                                   .weight = op.weight.data<float>(),
                                   .width = op.x.dim(1),
                                   .eps = op.eps};
  const auto kernel = kernels_of(stream).forward[is_bf16(op.y)][is_bf16(op.x)];
  for_row_pieces(stream, op.x.dim(0), rows.width,
                 [&](std::int64_t begin, std::int64_t end) { kernel(rows, begin, end); });
}

void enqueue(CpuStream& stream, const RmsNormBackward& op) {
  const RmsNormBackwardRows rows = {.dx = op.dx.raw(),
                                    .dy = op.dy.raw(),
                                    .x = op.x.raw(),
                                    .x_stride = op.x.stride(0),
                                    .rstd = op.rstd.data<float>(),
                                    .weight = op.weight.data<float>(),
                                    .width = op.x.dim(1)};
  const auto kernel = kernels_of(stream).backward[is_bf16(op.dx)][is_bf16(op.dy)][is_bf16(op.x)];
  sum_over_row_chunks(stream, op.dweight.data<float>(), op.accumulate, op.x.dim(0), rows.width,
                      [&](float* dweight, std::int64_t begin, std::int64_t end) {
                        kernel(rows, dweight, begin, end);
                      });
}

void enqueue(CpuStream& stream, const NormResidualForward& op) {
  const NormResidualRows rows = {.h = op.h.data<float>(),
                                 .h_rounded = op.h_rounded.raw(),
                                 .rstd = op.rstd.data<float>(),
                                 .a = op.a.raw(),
                                 .x = op.x.data<float>(),
                                 .weight = op.weight.data<float>(),
                                 .width = op.x.dim(1),
                                 .eps = op.eps};
  const auto kernel = kernels_of(stream).norm_residual[is_bf16(op.a)];
  for_row_pieces(stream, op.x.dim(0), rows.width,
                 [&](std::int64_t begin, std::int64_t end) { kernel(rows, begin, end); });
}

}  // namespace lockstep::ops
