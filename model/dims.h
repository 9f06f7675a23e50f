#pragma once

#include <cstdint>

#include "model/config.h"

namespace lockstep {

// The sizes of a model by the letters that shapes are written in (docs/numerics.md).
struct Dims {
  std::int64_t D;  // model width
  std::int64_t H;  // query heads
  std::int64_t G;  // key and value heads
  std::int64_t K;  // head width
  std::int64_t F;  // MLP width
  std::int64_t V;  // vocabulary rows, padding included
  std::int64_t L;  // blocks

  [[nodiscard]] std::int64_t q_width() const { return H * K; }
  [[nodiscard]] std::int64_t kv_width() const { return G * K; }
  [[nodiscard]] std::int64_t qkv_width() const { return (H + 2 * G) * K; }
};

[[nodiscard]] inline Dims dims_of(const ModelConfig& config) {
  return {.D = config.d_model,
          .H = config.n_heads,
          .G = config.n_kv_heads,
          .K = config.head_dim,
          .F = config.d_ff,
          .V = config.vocab_rows(),
          .L = config.n_layers};
}

}  // namespace lockstep
