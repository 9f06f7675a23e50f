#pragma once

#include "ops/packed_weight.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep::ops {

// One AdamW update (Loshchilov & Hutter 2019, decoupled decay; the order of operations of
// OLMo-core's SkipStepAdamW), element by element in fp32, in one pass over memory:
//   g' = grad_scale g;  p *= 1 - lr wd;  m += (1-b1)(g' - m);  v = b2 v + (1-b2) g'^2;
//   p -= step_size m / (sqrt(v) * inv_sqrt_correction + eps)
// with step_size = lr / (1 - b1^t) and inv_sqrt_correction = 1 / sqrt(1 - b2^t), t from 1.
// Where p is the whole of a packed weight, its layouts are written in the same pass, as PackWeight
// would write them afterwards.
struct AdamWStep {
  static constexpr const char* kName = "adamw_step";
  View p;                                // inout (n) f32; of a packed weight, n = out x in
  View m;                                // inout (n) f32
  View v;                                // inout (n) f32
  View g;                                // in    (n) f32
  const PackedWeight* packed = nullptr;  // out, or null
  float decay = 1;                       // 1 - lr wd, or 1
  double beta1 = 0.9;  // doubles: 1 - b is rounded to fp32 once, as the reference does
  double beta2 = 0.95;
  float step_size = 0;
  float inv_sqrt_correction = 1;
  float eps = 1e-8F;
  float grad_scale = 1;  // the clip coefficient
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

void enqueue(CpuStream& stream, const AdamWStep& op);

}  // namespace lockstep::ops
