#pragma once

#include <cstdint>

#include "ops/accumulate.h"
#include "ops/packed_weight.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep::ops {

// The language-model head fused with its loss: logits = h w^T by tiles of rows and vocabulary,
// never stored whole in fp32. Per row with a target y: ce = lse - logit[y], z = lse^2, where lse =
// log sum_v exp(logit[v]) over v < vocab, in fp32 from fp32 logits (z-loss: PaLM, Chowdhery et al.
// 2022, section 5). Rows with target -1 get ce = 0 and count for nothing.
struct HeadLossForward {
  static constexpr const char* kName = "head_loss_forward";
  View token_ce;           // out (N) f32
  View token_lse;          // out (N) f32, for every row
  View token_argmax;       // out (N) i32: the lowest v with the largest logit; may be absent
  View h;                  // in  (N, D) the weight's dtype
  const PackedWeight* w;   // in  (V, D)
  View targets;            // in  (N) i32, in [-1, vocab)
  std::int64_t vocab = 0;  // columns from here on have no mass (evaluation); V in training
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// Forward and gradients of  scale * (sum ce + z_coefficient * sum z)  in one pass:
// dlogit[v] = scale * ((1 + 2 z_coefficient lse) softmax[v] - [v == y]), rounded to the weight's
// dtype for the products (in bf16 mode from exponentials kept with 10 bits between the pass that
// sums them and the pass that knows the sum). Three products, none repeated; scratch memory holds
// the exponentials of as many rows at a time as kept_bytes allow (at least 64). The order of all
// sums is a function of the shapes and kept_bytes alone. Rows vocab to V of dw are zeroed, or with
// kAdd left as they are; rows without a target add nothing.
struct HeadLossBackward {
  static constexpr const char* kName = "head_loss";
  View token_ce;          // out (N) f32
  View token_lse;         // out (N) f32
  View dh;                // out (N, D) f32, overwritten
  View dw;                // out (V, D) f32
  View h;                 // in  (N, D) the weight's dtype
  const PackedWeight* w;  // in  (V, D), packed with Use::kForwardAndBackward
  View targets;           // in  (N) i32
  std::int64_t vocab = 0;
  float z_coefficient = 0;
  float scale = 1;
  Accumulate accumulate = Accumulate::kOverwrite;  // of dw
  std::int64_t kept_bytes = std::int64_t{256} << 20;
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

void enqueue(CpuStream& stream, const HeadLossForward& op);
void enqueue(CpuStream& stream, const HeadLossBackward& op);

// What the op takes of a stream's scratch memory; of views, the shapes alone are read.
[[nodiscard]] std::int64_t scratch_bytes(const HeadLossBackward& op, Isa isa, int threads);

}  // namespace lockstep::ops
