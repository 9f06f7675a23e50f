#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace lockstep {

// The rotary frequencies of one kind of layer, and what cos and sin are multiplied by.
struct RopeFrequencies {
  std::vector<float> inverse;  // K/2
  float attention_factor = 1;
};

// inverse[i] = 1 / pow(theta, 2 i / K), every operation rounded to fp32 as PyTorch does. YaRN (Peng
// et al. 2023), n_i = 1 / inverse[i], s = factor, L0 = original context:
//   dim(r) = K ln(L0 / (2 pi r)) / (2 ln theta);  low = max(floor(dim(beta_fast)), 0),
//   high = min(ceil(dim(beta_slow)), K/2 - 1);  ramp_i = clamp((i - low) / max(high - low, 1e-3))
//   inverse[i] = ramp_i / (s n_i) + (1 - ramp_i) / n_i
// The clamp of `high` is OLMo-core's; Hugging Face clamps with K - 1, which differs only for
// original contexts beyond 2 pi theta.
[[nodiscard]] RopeFrequencies rope_frequencies(const ModelConfig& config, LayerType type);

// cos and sin for positions [0, P), fp32: phase = float(position) * inverse[i] rounded to fp32
// before the function is taken, as the reference does (an fp64 phase is more exact and 2e-4 away
// from the reference's logits at 8192 positions). One pair of tables per kind of layer; kinds with
// equal frequencies share one.
class RopeTable {
 public:
  struct Tables {
    View cos;  // (P, K/2) f32
    View sin;  // (P, K/2) f32
  };

  RopeTable() = default;
  RopeTable(const ModelConfig& config, std::int64_t positions);

  [[nodiscard]] std::int64_t positions() const { return positions_; }
  [[nodiscard]] const Tables& of(LayerType type) const {
    return type == LayerType::kSliding ? sliding_ : full_;
  }
  [[nodiscard]] static std::int64_t bytes(const ModelConfig& config, std::int64_t positions);

 private:
  std::int64_t positions_ = 0;
  Buffer memory_;
  Tables sliding_;
  Tables full_;
};

}  // namespace lockstep
