#pragma once

#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep::ops {

// y = silu(gate) * up (Shazeer 2020, "GLU variants improve transformer"), gate and up side by side:
// gate_up[n, 0:F] and gate_up[n, F:2F]. fp32 arithmetic, one rounding at the store.
struct SwiGluForward {
  static constexpr const char* kName = "swiglu_forward";
  View y;        // out (N, F)  f32|bf16, overwritten
  View gate_up;  // in  (N, 2F) as y
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// dgate = dy * up * s * (1 + gate * (1 - s)), s = sigmoid(gate); dup = dy * gate * s.
struct SwiGluBackward {
  static constexpr const char* kName = "swiglu_backward";
  View dgate_up;  // out (N, 2F) f32|bf16, overwritten; may alias gate_up
  View dy;        // in  (N, F)  as dgate_up
  View gate_up;   // in  (N, 2F) as dgate_up
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

void enqueue(CpuStream& stream, const SwiGluForward& op);
void enqueue(CpuStream& stream, const SwiGluBackward& op);

}  // namespace lockstep::ops
