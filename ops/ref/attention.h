#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <span>
#include <vector>

// Attention as its formula says, one scalar at a time, for tests. T = float, double,
// std::complex<double>. All tensors are contiguous: q, out (B, T, H, K); k, v (B, S, G, K);
// lse (B, H, T); segments (B, S) or empty.
namespace lockstep::ops::ref {

struct AttentionShape {
  std::int64_t batches, queries, keys, heads, kv_heads, dim;
  std::int64_t first_query = 0;
  std::int64_t window = 0;
  double scale = 1;

  [[nodiscard]] std::size_t query_row(std::int64_t b, std::int64_t i, std::int64_t h) const {
    return static_cast<std::size_t>(((b * queries + i) * heads + h) * dim);
  }
  [[nodiscard]] std::size_t key_row(std::int64_t b, std::int64_t j, std::int64_t h) const {
    return static_cast<std::size_t>(((b * keys + j) * kv_heads + h / (heads / kv_heads)) * dim);
  }
  [[nodiscard]] bool visible(std::span<const std::int32_t> segments, std::int64_t b, std::int64_t i,
                             std::int64_t j) const {
    const std::int64_t distance = first_query + i - j;
    if (distance < 0 || (window > 0 && distance >= window)) return false;
    if (segments.empty()) return true;
    const auto row = static_cast<std::size_t>(b * keys);
    return segments[row + static_cast<std::size_t>(first_query + i)] ==
           segments[row + static_cast<std::size_t>(j)];
  }
};

template <class T>
T dot(std::span<const T> a, std::size_t a_row, std::span<const T> b, std::size_t b_row,
      std::int64_t n) {
  T sum{};
  for (std::size_t d = 0; d < static_cast<std::size_t>(n); ++d) sum += a[a_row + d] * b[b_row + d];
  return sum;
}

// The probabilities of query (b, i, h) over all keys, zero where masked; returns lse. The shift is
// a real number, so that complex steps pass through.
template <class T>
T softmax_row(std::vector<T>& p, const AttentionShape& s, std::span<const T> q,
              std::span<const T> k, std::span<const std::int32_t> segments, std::int64_t b,
              std::int64_t i, std::int64_t h) {
  p.assign(static_cast<std::size_t>(s.keys), T{});
  double shift = -1e300;
  for (std::int64_t j = 0; j < s.keys; ++j) {
    if (!s.visible(segments, b, i, j)) continue;
    const T score = dot(q, s.query_row(b, i, h), k, s.key_row(b, j, h), s.dim) * T(s.scale);
    p[static_cast<std::size_t>(j)] = score;
    shift = std::max(shift, static_cast<double>(std::real(score)));
  }
  T sum{};
  for (std::int64_t j = 0; j < s.keys; ++j) {
    if (!s.visible(segments, b, i, j)) continue;
    T& x = p[static_cast<std::size_t>(j)];
    x = std::exp(x - T(shift));
    sum += x;
  }
  for (T& x : p) x /= sum;
  return T(shift) + std::log(sum);
}

template <class T>
void attention_forward(std::span<T> out, std::span<T> lse, const AttentionShape& s,
                       std::span<const T> q, std::span<const T> k, std::span<const T> v,
                       std::span<const std::int32_t> segments) {
  std::vector<T> p;
  for (std::int64_t b = 0; b < s.batches; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      for (std::int64_t i = 0; i < s.queries; ++i) {
        lse[static_cast<std::size_t>((b * s.heads + h) * s.queries + i)] =
            softmax_row(p, s, q, k, segments, b, i, h);
        for (std::int64_t d = 0; d < s.dim; ++d) {
          T sum{};
          for (std::int64_t j = 0; j < s.keys; ++j) {
            sum += p[static_cast<std::size_t>(j)] *
                   v[s.key_row(b, j, h) + static_cast<std::size_t>(d)];
          }
          out[s.query_row(b, i, h) + static_cast<std::size_t>(d)] = sum;
        }
      }
    }
  }
}

// With first_query = 0 and keys = queries. dS = P * (dP - sum_j P dP).
template <class T>
void attention_backward(std::span<T> dq, std::span<T> dk, std::span<T> dv, const AttentionShape& s,
                        std::span<const T> dout, std::span<const T> q, std::span<const T> k,
                        std::span<const T> v, std::span<const std::int32_t> segments) {
  for (std::span<T> gradient : {dq, dk, dv}) {
    for (T& x : gradient) x = T{};
  }
  std::vector<T> p;
  std::vector<T> dp(static_cast<std::size_t>(s.keys));
  for (std::int64_t b = 0; b < s.batches; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      for (std::int64_t i = 0; i < s.queries; ++i) {
        softmax_row(p, s, q, k, segments, b, i, h);
        const std::size_t query = s.query_row(b, i, h);
        T delta{};
        for (std::int64_t j = 0; j < s.keys; ++j) {
          const auto at = static_cast<std::size_t>(j);
          dp[at] = dot(dout, query, v, s.key_row(b, j, h), s.dim);
          delta += p[at] * dp[at];
        }
        for (std::int64_t j = 0; j < s.keys; ++j) {
          const auto at = static_cast<std::size_t>(j);
          const std::size_t key = s.key_row(b, j, h);
          const T ds = p[at] * (dp[at] - delta) * T(s.scale);
          for (std::size_t d = 0; d < static_cast<std::size_t>(s.dim); ++d) {
            dv[key + d] += p[at] * dout[query + d];
            dq[query + d] += ds * k[key + d];
            dk[key + d] += ds * q[query + d];
          }
        }
      }
    }
  }
}

}  // namespace lockstep::ops::ref
