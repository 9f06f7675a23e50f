#include "ops/swiglu.h"

#include "ops/cpu/rows.h"
#include "ops/cpu/swiglu_kernels.h"

namespace lockstep::ops {
namespace {

const SwiGluKernels& kernels_of(const CpuStream& stream) {
  return *by_isa(stream.isa(), &portable::swiglu_kernels, &avx2::swiglu_kernels,
                 &avx512::swiglu_kernels, &avx512::swiglu_kernels);
}

}  // namespace

void enqueue(CpuStream& stream, const SwiGluForward& op) {
  const SwiGluForwardRows rows = {
      .y = op.y.raw(), .gate_up = op.gate_up.raw(), .width = op.y.dim(1)};
  const auto kernel = kernels_of(stream).forward[is_bf16(op.y)];
  for_row_pieces(stream, op.y.dim(0), rows.width,
                 [&](std::int64_t begin, std::int64_t end) { kernel(rows, begin, end); });
}

void enqueue(CpuStream& stream, const SwiGluBackward& op) {
  const SwiGluBackwardRows rows = {.dgate_up = op.dgate_up.raw(),
                                   .dy = op.dy.raw(),
                                   .gate_up = op.gate_up.raw(),
                                   .width = op.dy.dim(1)};
  const auto kernel = kernels_of(stream).backward[is_bf16(op.dy)];
  for_row_pieces(stream, op.dy.dim(0), rows.width,
                 [&](std::int64_t begin, std::int64_t end) { kernel(rows, begin, end); });
}

}  // namespace lockstep::ops
