#include "ops/matmul.h"

#include <algorithm>

#include "base/error.h"
#include "ops/cpu/gemm.h"
#include "ops/packed_weight.h"

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

void require_isa(CpuStream& stream, const PackedWeight& w) {
  LOCKSTEP_CHECK(w.isa() == stream.isa(), "weight packed for ", name_of(w.isa()), ", stream of ",
                 name_of(stream.isa()));
}

// The rows [row, row + rows) of the weight into both layouts.
void pack_rows(const GemmKernels& kernels, const PackedWeight& w, const float* weight,
               std::int64_t row, std::int64_t rows) {
  const bool is_bf16 = w.dtype() == DType::kBF16;
  const std::int64_t in = w.in();
  const float* from = weight + row * in;
  const std::int64_t forward = row * packed_depth(w.dtype(), in);
  if (is_bf16) {
    kernels.pack_bt_rounding(w.forward().data<bf16>() + forward, from, in, in, rows);
  } else {
    kernels.pack_bt_f32(w.forward().data<float>() + forward, from, in, in, rows);
  }
  if (w.use() == PackedWeight::Use::kForward) return;
  for (std::int64_t n = 0; n < in; n += kernels.panel) {
    const std::int64_t cols = std::min<std::int64_t>(kernels.panel, in - n);
    const std::int64_t to = n * packed_depth(w.dtype(), w.out()) + row * ((cols + 15) / 16 * 16);
    if (is_bf16) {
      kernels.pack_b_rounding(w.backward().data<bf16>() + to, from + n, in, rows, cols);
    } else {
      kernels.pack_b_f32(w.backward().data<float>() + to, from + n, in, rows, cols);
    }
  }
}

}  // namespace

void enqueue(CpuStream& stream, const PackWeight& op) {
  require_isa(stream, *op.packed);
  const GemmKernels& kernels = gemm_kernels_of(stream.isa());
  const std::int64_t out = op.packed->out();
  const std::int64_t panel = kernels.panel;
  // One panel of the forward layout a task; its rows, an even number, are whole pairs of the
  // backward layout's depth.
  stream.pool().parallel_for((out + panel - 1) / panel, [&](std::int64_t i, int) {
    pack_rows(kernels, *op.packed, op.weight.data<float>(), i * panel,
              std::min(panel, out - i * panel));
  });
}

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
