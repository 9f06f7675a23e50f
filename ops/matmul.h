#pragma once

#include "ops/accumulate.h"
#include "ops/packed_weight.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep::ops {

// Products of token rows with a linear weight w (O, I). Operands have the weight's dtype; products
// are accumulated in fp32 in an order that is a function of the shapes (O, I) alone: a row's bits
// depend neither on N nor on the number of threads. bf16 products on avx512_bf16 use vdpbf16ps,
// which takes subnormal operands as zero and flushes subnormal sums to zero.

// y[n,o] = sum_i x[n,i] w[o,i]
struct MatmulForward {
  static constexpr const char* kName = "matmul_forward";
  View y;                 // out (N, O) f32|bf16, overwritten; rows may be strided
  View x;                 // in  (N, I) the weight's dtype; rows may be strided
  const PackedWeight* w;  // in
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// dx[n,i] (=|+=) sum_o dy[n,o] w[o,i]; with kAdd dx is f32 and gets fl(dx + sum).
struct MatmulBackwardInput {
  static constexpr const char* kName = "matmul_backward_input";
  View dx;                // out (N, I) f32|bf16
  View dy;                // in  (N, O) the weight's dtype; rows may be strided
  const PackedWeight* w;  // in, packed with Use::kForwardAndBackward
  Accumulate accumulate = Accumulate::kOverwrite;
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// dw[o,i] (=|+=) sum_n dy[n,o] x[n,i]; the sum over n runs in an order that is a function of N
// alone; with kAdd dw gets fl(dw + sum), the sum finished before.
struct MatmulBackwardWeight {
  static constexpr const char* kName = "matmul_backward_weight";
  View dw;  // out (O, I) f32
  View dy;  // in  (N, O) f32|bf16; rows may be strided
  View x;   // in  (N, I) as dy; rows may be strided
  Accumulate accumulate = Accumulate::kOverwrite;
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

void enqueue(CpuStream& stream, const MatmulForward& op);
void enqueue(CpuStream& stream, const MatmulBackwardInput& op);
void enqueue(CpuStream& stream, const MatmulBackwardWeight& op);

// What the op takes of a stream's scratch memory; of views, the shapes alone are read.
[[nodiscard]] std::int64_t scratch_bytes(const MatmulBackwardWeight& op, Isa isa, int threads);

}  // namespace lockstep::ops
