#include "ops/cpu/adamw_kernels.h"

#include "ops/cpu/simd.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

void step(float* p, float* m, float* v, const float* g, std::int64_t n,
          const AdamWScalars& scalars) {
  const F32x16 decay = splat(scalars.decay);
  const F32x16 one_minus_beta1 = splat(scalars.one_minus_beta1);
  const F32x16 beta2 = splat(scalars.beta2);
  const F32x16 one_minus_beta2 = splat(scalars.one_minus_beta2);
  const F32x16 step_size = splat(scalars.step_size);
  const F32x16 correction = splat(scalars.inv_sqrt_correction);
  const F32x16 eps = splat(scalars.eps);
  const F32x16 grad_scale = splat(scalars.grad_scale);
  for_lanes(n, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
    const F32x16 grad = load(g + i, lanes) * grad_scale;
    const F32x16 m_old = load(m + i, lanes);
    const F32x16 m_new = m_old + one_minus_beta1 * (grad - m_old);
    const F32x16 v_new = beta2 * load(v + i, lanes) + one_minus_beta2 * (grad * grad);
    const F32x16 denominator = sqrt(v_new) * correction + eps;
    store(p + i, load(p + i, lanes) * decay - (step_size * m_new) / denominator, lanes);
    store(m + i, m_new, lanes);
    store(v + i, v_new, lanes);
  });
}

}  // namespace

const AdamWKernels adamw_kernels = {.step = step};

}  // namespace lockstep::ops::LOCKSTEP_ISA
