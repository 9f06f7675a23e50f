#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "base/error.h"
#include "optim/adamw.h"

namespace lockstep {

// One AdamW update in plain scalar code, T = float or double; what the fast kernel is tested
// against. p, m, v are updated in place, g is the gradient after clipping; all of one length. In
// this order, as OLMo-core optim/adamw.py:
//   p *= decay;  m += (1 - b1)(g - m);  v = b2 v + (1 - b2) g^2;
//   p -= step_size m / (sqrt(v) inv_sqrt_correction + eps)
template <class T>
void adamw_ref(std::span<T> p, std::span<T> m, std::span<T> v, std::span<const T> g,
               const OptimConfig& config, const AdamWFactors& factors) {
  LOCKSTEP_CHECK(p.size() == m.size() && p.size() == v.size() && p.size() == g.size(), p.size(),
                 " parameters and ", g.size(), " gradients");
  const auto beta1 = static_cast<T>(config.beta1);
  const auto beta2 = static_cast<T>(config.beta2);
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] *= static_cast<T>(factors.decay);
    m[i] += (1 - beta1) * (g[i] - m[i]);
    v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
    p[i] -= static_cast<T>(factors.step_size) * m[i] /
            (std::sqrt(v[i]) * static_cast<T>(factors.inv_sqrt_correction) +
             static_cast<T>(config.eps));
  }
}

}  // namespace lockstep
