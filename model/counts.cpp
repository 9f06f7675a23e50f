#include "model/counts.h"

namespace lockstep {

ParameterCounts parameter_counts(const ModelConfig& config, std::int64_t rows) {
  const std::int64_t d = config.d_model;
  const std::int64_t q = config.q_width();
  const std::int64_t kv = config.kv_width();
  const std::int64_t attention = 2 * d * q + 2 * d * kv;
  const std::int64_t norms = q + kv + 2 * d;
  const std::int64_t layer = attention + norms + 3 * d * config.d_ff;
  return {.embedding = rows * d,
          .layer = layer,
          .layers = layer * config.n_layers,
          .final_norm = d,
          .head = rows * d};
}

StepFlops instance_flops(const ModelConfig& config, std::int64_t sequence_length) {
  const auto t = static_cast<double>(sequence_length);
  const auto d = static_cast<double>(config.d_model);
  const auto q = static_cast<double>(config.q_width());
  const auto kv = static_cast<double>(config.kv_width());
  const double mlp = 6 * t * d * static_cast<double>(config.d_ff);
  const double projections = 2 * t * d * (q + 2 * kv) + 2 * t * d * q;
  const double head = 2 * t * d * static_cast<double>(config.vocab_size);
  const double weights = static_cast<double>(config.n_layers) * (mlp + projections) + head;

  double full_attention = 0;
  double window_attention = 0;
  double olmo_attention = 0;
  for (std::int64_t layer = 0; layer < config.n_layers; ++layer) {
    const auto w = static_cast<double>(config.window(layer, sequence_length));
    full_attention += 2 * t * t * q;
    window_attention += 4 * (t * w - w * w / 2) * q;
    olmo_attention += 12 * q * w * t;
  }
  const ParameterCounts counts = parameter_counts(config, config.vocab_rows());
  const auto matrices = static_cast<double>(counts.layers + counts.head);
  // A backward pass costs twice its forward pass.
  return {.maxtext = 3 * (weights + full_attention),
          .olmo_core = 6 * matrices * t + olmo_attention,
          .window_exact = 3 * (weights + window_attention)};
}

}  // namespace lockstep
