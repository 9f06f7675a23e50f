#pragma once

#include <cstdint>
#include <vector>

// The formulas of ops/matmul.h in any number type, one loop each, for tests.
namespace lockstep::ops::ref {

// y (n, o) = x (n, i) w^T (o, i)
template <class T>
std::vector<T> matmul_forward(const std::vector<T>& x, const std::vector<T>& w, std::int64_t rows,
                              std::int64_t out, std::int64_t in) {
  std::vector<T> y(static_cast<std::size_t>(rows * out));
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t o = 0; o < out; ++o) {
      T sum{};
      for (std::int64_t i = 0; i < in; ++i) {
        sum += x[static_cast<std::size_t>(n * in + i)] * w[static_cast<std::size_t>(o * in + i)];
      }
      y[static_cast<std::size_t>(n * out + o)] = sum;
    }
  }
  return y;
}

// dx (n, i) = dy (n, o) w (o, i)
template <class T>
std::vector<T> matmul_backward_input(const std::vector<T>& dy, const std::vector<T>& w,
                                     std::int64_t rows, std::int64_t out, std::int64_t in) {
  std::vector<T> dx(static_cast<std::size_t>(rows * in));
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t o = 0; o < out; ++o) {
      const T d = dy[static_cast<std::size_t>(n * out + o)];
      for (std::int64_t i = 0; i < in; ++i) {
        dx[static_cast<std::size_t>(n * in + i)] += d * w[static_cast<std::size_t>(o * in + i)];
      }
    }
  }
  return dx;
}

// dw (o, i) = dy^T (o, n) x (n, i)
template <class T>
std::vector<T> matmul_backward_weight(const std::vector<T>& dy, const std::vector<T>& x,
                                      std::int64_t rows, std::int64_t out, std::int64_t in) {
  std::vector<T> dw(static_cast<std::size_t>(out * in));
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t o = 0; o < out; ++o) {
      const T d = dy[static_cast<std::size_t>(n * out + o)];
      for (std::int64_t i = 0; i < in; ++i) {
        dw[static_cast<std::size_t>(o * in + i)] += d * x[static_cast<std::size_t>(n * in + i)];
      }
    }
  }
  return dw;
}

}  // namespace lockstep::ops::ref
