#pragma once

#include <cstdint>

#include "model/config.h"

namespace lockstep {

// Parameters by part. Rows of embedding and head: `rows`, which is vocab_rows() in training and
// vocab_size in a published checkpoint.
struct ParameterCounts {
  std::int64_t embedding = 0;  // rows * d_model
  std::int64_t layer = 0;      // one block, its four norms included
  std::int64_t layers = 0;     // all blocks
  std::int64_t final_norm = 0;
  std::int64_t head = 0;  // rows * d_model
  [[nodiscard]] std::int64_t total() const { return embedding + layers + final_norm + head; }
  // All but the input embedding; the head counts.
  [[nodiscard]] std::int64_t non_embedding() const { return total() - embedding; }
};
[[nodiscard]] ParameterCounts parameter_counts(const ModelConfig& config, std::int64_t rows);
[[nodiscard]] inline std::int64_t parameter_count(const ModelConfig& config) {
  return parameter_counts(config, config.vocab_rows()).total();
}

// Floating-point operations of forward and backward of one instance of T tokens, no recomputation
// counted, under three conventions in use.
struct StepFlops {
  // MaxText maxtext_utils.calculate_tflops_training_per_device, default branch: matrix products
  // 2 per multiply-add, every layer full causal attention (half of T^2), head of vocab_size.
  double maxtext = 0;
  // OLMo-core nn/transformer num_flops_per_token: 6 per parameter of blocks and head (norms
  // included, padded rows), 12 n_heads head_dim min(W, T) per token and layer, no causal halving.
  double olmo_core = 0;
  // As maxtext, but sliding layers count the pairs inside their window: T W - W^2 / 2.
  double window_exact = 0;
};
[[nodiscard]] StepFlops instance_flops(const ModelConfig& config, std::int64_t sequence_length);

}  // namespace lockstep
