#pragma once

#include <cmath>

#include "ops/adamw.h"

// ops/adamw.h for one element, for tests. T is float (the kernel's own order and roundings) or
// double.
namespace lockstep::ops::ref {

template <class T>
struct AdamWElement {
  T p;
  T m;
  T v;
};

template <class T>
AdamWElement<T> adamw_step(AdamWElement<T> at, T g, const AdamWStep& op) {
  const T grad = g * T(op.grad_scale);
  at.p *= T(op.decay);
  at.m += static_cast<T>(1 - op.beta1) * (grad - at.m);
  at.v = static_cast<T>(op.beta2) * at.v + static_cast<T>(1 - op.beta2) * (grad * grad);
  at.p -= T(op.step_size) * at.m / (std::sqrt(at.v) * T(op.inv_sqrt_correction) + T(op.eps));
  return at;
}

}  // namespace lockstep::ops::ref
