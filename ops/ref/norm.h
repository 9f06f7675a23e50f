#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

// The norms and the rotary embedding as their headers define them, in plain loops, for tests. T is
// float, double or std::complex<double>.
namespace lockstep::ops::ref {

template <class T>
struct Normed {
  std::vector<T> y;
  std::vector<T> rstd;
};

// x (n, d), weight (d)
template <class T>
Normed<T> rms_norm_forward(const std::vector<T>& x, const std::vector<T>& weight, double eps) {
  using std::sqrt;
  const std::size_t d = weight.size();
  const std::size_t n = x.size() / d;
  Normed<T> out{std::vector<T>(n * d), std::vector<T>(n)};
  for (std::size_t row = 0; row < n; ++row) {
    T sum = 0;
    for (std::size_t i = 0; i < d; ++i) sum += x[row * d + i] * x[row * d + i];
    const T rstd = T(1) / sqrt(sum / T(static_cast<double>(d)) + T(eps));
    out.rstd[row] = rstd;
    for (std::size_t i = 0; i < d; ++i) out.y[row * d + i] = weight[i] * x[row * d + i] * rstd;
  }
  return out;
}

template <class T>
struct NormGradients {
  std::vector<T> dx;
  std::vector<T> dweight;
};

template <class T>
NormGradients<T> rms_norm_backward(const std::vector<T>& dy, const std::vector<T>& x,
                                   const std::vector<T>& rstd, const std::vector<T>& weight) {
  const std::size_t d = weight.size();
  const std::size_t n = rstd.size();
  NormGradients<T> out{std::vector<T>(n * d), std::vector<T>(d)};
  for (std::size_t row = 0; row < n; ++row) {
    T mean = 0;
    for (std::size_t i = 0; i < d; ++i) mean += weight[i] * dy[row * d + i] * x[row * d + i];
    mean /= T(static_cast<double>(d));
    const T r = rstd[row];
    for (std::size_t i = 0; i < d; ++i) {
      const std::size_t at = row * d + i;
      out.dx[at] = r * (weight[i] * dy[at] - x[at] * r * r * mean);
      out.dweight[i] += dy[at] * x[at] * r;
    }
  }
  return out;
}

// Row n of x (n, d) turned by the angles of table row positions[n]: cos and sin (P, half); sign -1
// turns back.
template <class T>
std::vector<T> rotate(const std::vector<T>& x, std::size_t d, const std::vector<double>& cos,
                      const std::vector<double>& sin, std::size_t half,
                      const std::vector<std::size_t>& positions, double sign) {
  std::vector<T> y(x.size());
  for (std::size_t row = 0; row < positions.size(); ++row) {
    for (std::size_t head = 0; head < d; head += 2 * half) {
      for (std::size_t i = 0; i < half; ++i) {
        const std::size_t low = row * d + head + i;
        const T c = T(cos[positions[row] * half + i]);
        const T s = T(sign * sin[positions[row] * half + i]);
        y[low] = x[low] * c - x[low + half] * s;
        y[low + half] = x[low + half] * c + x[low] * s;
      }
    }
  }
  return y;
}

}  // namespace lockstep::ops::ref
