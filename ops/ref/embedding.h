#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// ops/embedding.h in plain loops, for tests. T is float, double or std::complex<double>.
namespace lockstep::ops::ref {

// weight (v, d)
template <class T>
std::vector<T> embedding_forward(const std::vector<std::int32_t>& tokens,
                                 const std::vector<T>& weight, std::size_t d) {
  std::vector<T> y;
  for (const std::int32_t token : tokens) {
    for (std::size_t i = 0; i < d; ++i)
      y.push_back(weight[static_cast<std::size_t>(token) * d + i]);
  }
  return y;
}

template <class T>
std::vector<T> embedding_backward(const std::vector<std::int32_t>& tokens, const std::vector<T>& dy,
                                  std::size_t vocab, std::size_t d) {
  std::vector<T> dweight(vocab * d);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    for (std::size_t i = 0; i < d; ++i) {
      dweight[static_cast<std::size_t>(tokens[row]) * d + i] += dy[row * d + i];
    }
  }
  return dweight;
}

}  // namespace lockstep::ops::ref
