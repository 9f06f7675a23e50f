#include "model/config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/read.h"

namespace lockstep {
namespace {

struct PresetSizes {
  Preset preset;
  std::int64_t d_model, n_layers, n_heads, n_kv_heads, head_dim, d_ff;
};

// Source: OLMo-core nn/transformer/config.py, TransformerConfig.olmo3_*. The widths follow its
// rule: floor(8 d / 3), times a multiplier, rounded up to a multiple of 256 (32b: 512).
constexpr std::array kPresets = {
    PresetSizes{Preset::k1M, 12, 4, 4, 4, 4, 256},
    PresetSizes{Preset::k14M, 128, 4, 8, 8, 16, 512},
    PresetSizes{Preset::k30M, 256, 4, 8, 8, 32, 768},
    PresetSizes{Preset::k60M, 384, 8, 8, 8, 48, 1536},
    PresetSizes{Preset::k100M, 512, 12, 8, 8, 64, 2048},
    PresetSizes{Preset::k190M, 768, 12, 12, 12, 64, 3072},
    PresetSizes{Preset::k370M, 1024, 16, 16, 16, 64, 4096},
    PresetSizes{Preset::k600M, 1280, 16, 16, 16, 80, 5120},
    PresetSizes{Preset::k760M, 1536, 16, 16, 16, 96, 6144},
    PresetSizes{Preset::k1B, 2048, 16, 16, 16, 128, 8192},
    PresetSizes{Preset::k3B, 3328, 16, 16, 16, 208, 13312},
    PresetSizes{Preset::k7B, 4096, 32, 32, 32, 128, 11008},
    PresetSizes{Preset::k13B, 5120, 40, 40, 40, 128, 13824},
    PresetSizes{Preset::k32B, 5120, 64, 40, 8, 128, 27648},
};

}  // namespace

double RopeConfig::cos_sin_scale() const {
  if (scaling == RopeScaling::kNone) return 1;
  return attention_factor ? *attention_factor : 0.1 * std::log(factor) + 1;
}

void ModelConfig::apply_preset() {
  for (const PresetSizes& each : kPresets) {
    if (each.preset != preset) continue;
    d_model = each.d_model;
    n_layers = each.n_layers;
    n_heads = each.n_heads;
    n_kv_heads = each.n_kv_heads;
    head_dim = each.head_dim;
    d_ff = each.d_ff;
  }
}

void ModelConfig::validate() const {
  if (n_heads % n_kv_heads != 0) {
    fail_key("model.n_kv_heads", {n_kv_heads}, concat("must divide n_heads = ", n_heads));
  }
  if (head_dim % 2 != 0) fail_key("model.head_dim", {head_dim}, "must be even");
  if (vocab_rows() < vocab_size) {
    fail_key("model.padded_vocab_size", {vocab_rows()},
             concat("must be at least vocab_size = ", vocab_size));
  }
  if (layer_pattern.empty()) {
    fail(ErrorKind::kConfig, "model.layer_pattern: must name at least one layer");
  }
  if (!layer_types.empty() && layer_types.size() != static_cast<std::size_t>(n_layers)) {
    fail(ErrorKind::kConfig, "model.layer_types: names ", layer_types.size(),
         " layers; must be empty or name all n_layers = ", n_layers);
  }
  if (eos_token_id >= vocab_size) {
    fail_key("model.eos_token_id", {eos_token_id},
             concat("must be below vocab_size = ", vocab_size));
  }
  if (pad_token_id >= vocab_size) {
    fail_key("model.pad_token_id", {pad_token_id},
             concat("must be below vocab_size = ", vocab_size, ", or -1"));
  }
}

std::int64_t ModelConfig::vocab_rows() const {
  constexpr std::int64_t kMultiple = 128;
  return padded_vocab_size.value_or((vocab_size + kMultiple - 1) / kMultiple * kMultiple);
}

LayerType ModelConfig::layer_type(std::int64_t layer) const {
  LOCKSTEP_CHECK(layer >= 0 && layer < n_layers, "layer ", layer, " of ", n_layers);
  if (sliding_window == 0) return LayerType::kFull;
  const auto& types = layer_types.empty() ? layer_pattern : layer_types;
  return types[static_cast<std::size_t>(layer) % types.size()];
}

std::int64_t ModelConfig::window(std::int64_t layer, std::int64_t sequence_length) const {
  return layer_type(layer) == LayerType::kFull ? sequence_length
                                               : std::min(sliding_window, sequence_length);
}

const RopeConfig& ModelConfig::rope(std::int64_t layer) const {
  return layer_type(layer) == LayerType::kFull || rope_scaling_on_all_layers ? rope_full
                                                                             : rope_sliding;
}

}  // namespace lockstep
