#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

// ops/swiglu.h in plain loops, for tests. T is float, double or std::complex<double>.
namespace lockstep::ops::ref {

template <class T>
T sigmoid(const T& x) {
  using std::exp;
  return T(1) / (T(1) + exp(-x));
}

// gate_up (n, 2 f) to (n, f)
template <class T>
std::vector<T> swiglu_forward(const std::vector<T>& gate_up, std::size_t f) {
  const std::size_t n = gate_up.size() / (2 * f);
  std::vector<T> y(n * f);
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t i = 0; i < f; ++i) {
      const T gate = gate_up[row * 2 * f + i];
      y[row * f + i] = gate * sigmoid(gate) * gate_up[row * 2 * f + f + i];
    }
  }
  return y;
}

template <class T>
std::vector<T> swiglu_backward(const std::vector<T>& dy, const std::vector<T>& gate_up,
                               std::size_t f) {
  const std::size_t n = dy.size() / f;
  std::vector<T> dgate_up(2 * n * f);
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t i = 0; i < f; ++i) {
      const T gate = gate_up[row * 2 * f + i];
      const T up = gate_up[row * 2 * f + f + i];
      const T s = sigmoid(gate);
      dgate_up[row * 2 * f + i] = dy[row * f + i] * up * s * (T(1) + gate * (T(1) - s));
      dgate_up[row * 2 * f + f + i] = dy[row * f + i] * gate * s;
    }
  }
  return dgate_up;
}

}  // namespace lockstep::ops::ref
