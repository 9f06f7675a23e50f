#pragma once

#include "ops/accumulate.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep::ops {

// RMSNorm (Zhang & Sennrich 2019, eq. 4): y = weight * x * rstd, rstd = 1/sqrt(mean_d x^2 + eps).
// Statistics and products are fp32; the only rounding is the store of y. A row's result does not
// depend on the other rows.
struct RmsNormForward {
  static constexpr const char* kName = "rms_norm_forward";
  View y;       // out (N, D) f32|bf16, overwritten; may not alias x
  View rstd;    // out (N)    f32
  View x;       // in  (N, D) f32|bf16, rows may be strided
  View weight;  // in  (D)    f32
  float eps = 1e-6F;
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// dx = rstd * (weight*dy - x * rstd^2 * mean_d(weight*dy*x)); dweight[d] (=|+=) sum_n dy * x *
// rstd, summed over fixed chunks of rows, then over the chunks in order.
struct RmsNormBackward {
  static constexpr const char* kName = "rms_norm_backward";
  View dx;       // out (N, D) f32|bf16, overwritten; may alias dy when the dtypes are equal
  View dweight;  // out (D)    f32
  View dy;       // in  (N, D) f32|bf16
  View x;        // in  (N, D) f32|bf16, rows may be strided
  View rstd;     // in  (N)    f32
  View weight;   // in  (D)    f32
  Accumulate accumulate = Accumulate::kOverwrite;  // of dweight
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// Olmo's reordered norm: h = x + RMSNorm(a). Its backward is RmsNormBackward with dy = dh (dx =
// dh).
struct NormResidualForward {
  static constexpr const char* kName = "norm_residual_forward";
  View h;          // out (N, D) f32, overwritten; may alias x
  View h_rounded;  // out (N, D) bf16, h rounded; absent in fp32 mode
  View rstd;       // out (N)    f32
  View a;          // in  (N, D) f32|bf16, the sub-block's output
  View x;          // in  (N, D) f32, the residual stream
  View weight;     // in  (D)    f32
  float eps = 1e-6F;
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

void enqueue(CpuStream& stream, const RmsNormForward& op);
void enqueue(CpuStream& stream, const RmsNormBackward& op);
void enqueue(CpuStream& stream, const NormResidualForward& op);

}  // namespace lockstep::ops
