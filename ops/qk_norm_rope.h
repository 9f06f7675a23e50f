#pragma once

#include <cstdint>

#include "ops/accumulate.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep::ops {

// Olmo's QK-norm and rotary embedding in one pass: z = RMSNorm over the whole projection (all heads
// together, D = heads * K), then per head, rotate-half convention (dim i pairs with i + K/2, Su et
// al. 2021 as in Hugging Face's rotate_half):
//   y[i] = z[i] cos[p,i] - z[i+K/2] sin[p,i];   y[i+K/2] = z[i+K/2] cos[p,i] + z[i] sin[p,i]
// with p = first_position + t. All arithmetic fp32, one rounding at the store.
struct QkNormRopeForward {
  static constexpr const char* kName = "qk_norm_rope_forward";
  View y;       // out (B, T, D) f32|bf16, overwritten; rows may be strided
  View rstd;    // out (B*T)     f32
  View x;       // in  (B, T, D) f32|bf16; rows may be strided
  View weight;  // in  (D)       f32
  View cos;     // in  (P, K/2)  f32, P >= first_position + T; heads = D / K
  View sin;     // in  (P, K/2)  f32
  std::int64_t first_position = 0;
  float eps = 1e-6F;
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// The gradient through both: dz = the rotation by the opposite angle of dy (scaled tables included:
// cos and sin carry YaRN's attention factor), then RmsNormBackward.
struct QkNormRopeBackward {
  static constexpr const char* kName = "qk_norm_rope_backward";
  View dx;  // out (B, T, D) f32|bf16, overwritten; rows may be strided; may alias dy when alike
  View dweight;  // out (D)       f32
  View dy;       // in  (B, T, D) f32|bf16; rows may be strided
  View x;        // in  (B, T, D) f32|bf16, as given to forward
  View rstd;     // in  (B*T)     f32
  View weight;   // in  (D)       f32
  View cos;      // in  (P, K/2)  f32
  View sin;      // in  (P, K/2)  f32
  std::int64_t first_position = 0;
  Accumulate accumulate = Accumulate::kOverwrite;  // of dweight
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

void enqueue(CpuStream& stream, const QkNormRopeForward& op);
void enqueue(CpuStream& stream, const QkNormRopeBackward& op);

}  // namespace lockstep::ops
