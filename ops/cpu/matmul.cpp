#include "ops/matmul.h"

#include <algorithm>

#include "ops/cpu/gemm.h"
#include "ops/cpu/packed_weight.h"

namespace lockstep::ops {
namespace {

GemmStore store_of(const View& c, Accumulate accumulate) {
  if (c.dtype() == DType::kBF16) return GemmStore::kBF16;
  return accumulate == Accumulate::kAdd ? GemmStore::kAddF32 : GemmStore::kF32;
}

Gemm product(const View& c, const View& a, const void* b, std::int64_t k, Accumulate accumulate) {
  Gemm g;
  g.m = c.dim(0);
  g.n = c.dim(1);
  g.k = k;
  g.type = a.dtype();
  g.b_type = a.dtype();
  g.a = a.raw();
  g.a_stride = a.stride(0);
  g.b = b;
  g.b_depth = k;
  g.b_cols = g.n;
  g.c = c.raw();
  g.c_stride = c.stride(0);
  g.store = store_of(c, accumulate);
  return g;
}

// dw = dy^T x, x packed.
Gemm weight_gradient(const MatmulBackwardWeight& op, Isa isa, const void* packed) {
  Gemm g = product(op.dw, op.dy, packed, op.x.dim(0), op.accumulate);
  g.b_type = columns_type(isa, op.x.dtype());
  g.a_layout = Gemm::Layout::kTransposed;
  return g;
}

std::int64_t packed_bytes(const MatmulBackwardWeight& op, Isa isa) {
  const DType type = columns_type(isa, op.x.dtype());
  const auto size = static_cast<std::int64_t>(size_of(type));
  return (packed_size(type, op.x.dim(0), op.x.dim(1)) * size + 63) / 64 * 64;
}

}  // namespace

void enqueue(CpuStream& stream, const MatmulForward& op) {
  require_isa(stream, *op.w);
  const Gemm g = product(op.y, op.x, op.w->forward().raw(), op.x.dim(1), Accumulate::kOverwrite);
  gemm(stream, g, stream.scratch(gemm_scratch_bytes(stream.isa(), stream.pool().threads(), g)));
}

void enqueue(CpuStream& stream, const MatmulBackwardInput& op) {
  require_isa(stream, *op.w);
  const Gemm g = product(op.dx, op.dy, op.w->backward().raw(), op.dy.dim(1), op.accumulate);
  gemm(stream, g, stream.scratch(gemm_scratch_bytes(stream.isa(), stream.pool().threads(), g)));
}

std::int64_t scratch_bytes(const MatmulBackwardWeight& op, Isa isa, int threads) {
  return packed_bytes(op, isa) +
         gemm_scratch_bytes(isa, threads, weight_gradient(op, isa, nullptr));
}

void enqueue(CpuStream& stream, const MatmulBackwardWeight& op) {
  const Isa isa = stream.isa();
  auto* scratch =
      static_cast<char*>(stream.scratch(scratch_bytes(op, isa, stream.pool().threads())));
  pack_columns(stream, scratch, op.x.dtype(), op.x.raw(), op.x.stride(0), op.x.dim(0), op.x.dim(1));
  gemm(stream, weight_gradient(op, isa, scratch), scratch + packed_bytes(op, isa));
}

}  // namespace lockstep::ops
