#include "ops/cpu/packed_weight.h"

#include <xmmintrin.h>

#include <algorithm>

#include "base/error.h"
#include "ops/cpu/gemm.h"

namespace lockstep::ops {
namespace {

void pack_forward(const PackedWeight& w, const float* from, std::int64_t row, std::int64_t rows) {
  const GemmKernels& kernels = gemm_kernels_of(w.isa());
  const std::int64_t to = row * packed_depth(w.dtype(), w.in());
  if (w.dtype() == DType::kBF16) {
    kernels.pack_bt_rounding(w.forward().data<bf16>() + to, from, w.in(), w.in(), rows);
  } else {
    kernels.pack_bt_f32(w.forward().data<float>() + to, from, w.in(), w.in(), rows);
  }
}

void pack_backward(const PackedWeight& w, const float* from, std::int64_t row, std::int64_t rows) {
  const GemmKernels& kernels = gemm_kernels_of(w.isa());
  for (std::int64_t n = 0; n < w.in(); n += kernels.panel) {
    const std::int64_t cols = std::min<std::int64_t>(kernels.panel, w.in() - n);
    const std::int64_t to = n * packed_depth(w.dtype(), w.out()) + row * ((cols + 15) / 16 * 16);
    if (w.dtype() == DType::kBF16) {
      kernels.pack_b_rounding(w.backward().data<bf16>() + to, from + n, w.in(), rows, cols);
    } else {
      kernels.pack_b_f32(w.backward().data<float>() + to, from + n, w.in(), rows, cols);
    }
  }
}

}  // namespace

void require_isa(CpuStream& stream, const PackedWeight& w) {
  LOCKSTEP_CHECK(w.isa() == stream.isa(), "weight packed for ", name_of(w.isa()), ", stream of ",
                 name_of(stream.isa()));
}

// One panel of the forward layout; its rows, an even number, are whole pairs of the backward
// layout's depth.
std::int64_t rows_at_once(const PackedWeight& w) { return gemm_kernels_of(w.isa()).panel; }

void pack_rows(const PackedWeight& w, const float* weight, std::int64_t row, std::int64_t rows) {
  const float* from = weight + row * w.in();
  pack_forward(w, from, row, rows);
  if (w.use() == PackedWeight::Use::kForwardAndBackward) pack_backward(w, from, row, rows);
  _mm_sfence();  // what was streamed is there for all threads
}

void enqueue(CpuStream& stream, const PackWeight& op) {
  pack_weight(stream, *op.packed, op.weight.data<float>(), [](std::int64_t, std::int64_t) {});
}

}  // namespace lockstep::ops
