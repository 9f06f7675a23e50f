#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "ops/ref/matmul.h"

// The formulas of ops/head_loss.h in any number type with exp and log, for tests.
namespace lockstep::ops::ref {

template <class T>
struct HeadLoss {
  std::vector<T> ce;   // (N)
  std::vector<T> lse;  // (N)
};

inline double real_part(double x) { return x; }
inline double real_part(const std::complex<double>& x) { return x.real(); }

template <class T>
HeadLoss<T> head_loss_forward(const std::vector<T>& h, const std::vector<T>& w,
                              const std::vector<std::int32_t>& targets, std::int64_t out,
                              std::int64_t in, std::int64_t vocab) {
  using std::exp;
  using std::log;
  const auto rows = static_cast<std::int64_t>(targets.size());
  const std::vector<T> logits = matmul_forward(h, w, rows, out, in);
  HeadLoss<T> loss;
  for (std::int64_t n = 0; n < rows; ++n) {
    const T* row = logits.data() + n * out;
    double top = real_part(row[0]);
    for (std::int64_t v = 1; v < vocab; ++v) top = std::max(top, real_part(row[v]));
    T sum{};
    for (std::int64_t v = 0; v < vocab; ++v) sum += exp(row[v] - T(top));
    loss.lse.push_back(T(top) + log(sum));
    const std::int32_t target = targets[static_cast<std::size_t>(n)];
    loss.ce.push_back(target < 0 ? T{} : loss.lse.back() - row[target]);
  }
  return loss;
}

// d/dlogits of scale * (sum ce + z_coefficient * sum lse^2), both sums over rows with a target.
template <class T>
std::vector<T> head_loss_dlogits(const std::vector<T>& logits,
                                 const std::vector<std::int32_t>& targets, const HeadLoss<T>& loss,
                                 std::int64_t out, std::int64_t vocab, double z_coefficient,
                                 double scale) {
  using std::exp;
  std::vector<T> d(logits.size());
  for (std::size_t n = 0; n < targets.size(); ++n) {
    if (targets[n] < 0) continue;
    for (std::int64_t v = 0; v < vocab; ++v) {
      const std::size_t at = n * static_cast<std::size_t>(out) + static_cast<std::size_t>(v);
      const T softmax = exp(logits[at] - loss.lse[n]);
      d[at] = T(scale) * (softmax * (T(1) + T(2 * z_coefficient) * loss.lse[n]) -
                          (v == targets[n] ? T(1) : T{}));
    }
  }
  return d;
}

}  // namespace lockstep::ops::ref
