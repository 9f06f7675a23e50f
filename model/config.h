#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/enum_name.h"

namespace lockstep {

// Sizes of the published Olmo 3 ladder; `custom` changes nothing.
enum class Preset {
  kCustom,
  k1M,
  k14M,
  k30M,
  k60M,
  k100M,
  k190M,
  k370M,
  k600M,
  k760M,
  k1B,
  k3B,
  k7B,
  k13B,
  k32B
};
constexpr auto enum_table(Preset) {
  return std::array{EnumName{Preset::kCustom, "custom"},   EnumName{Preset::k1M, "olmo3-1m"},
                    EnumName{Preset::k14M, "olmo3-14m"},   EnumName{Preset::k30M, "olmo3-30m"},
                    EnumName{Preset::k60M, "olmo3-60m"},   EnumName{Preset::k100M, "olmo3-100m"},
                    EnumName{Preset::k190M, "olmo3-190m"}, EnumName{Preset::k370M, "olmo3-370m"},
                    EnumName{Preset::k600M, "olmo3-600m"}, EnumName{Preset::k760M, "olmo3-760m"},
                    EnumName{Preset::k1B, "olmo3-1b"},     EnumName{Preset::k3B, "olmo3-3b"},
                    EnumName{Preset::k7B, "olmo3-7b"},     EnumName{Preset::k13B, "olmo3-13b"},
                    EnumName{Preset::k32B, "olmo3-32b"}};
}

// Names as in Hugging Face's config.json.
enum class LayerType { kSliding, kFull };
constexpr auto enum_table(LayerType) {
  return std::array{EnumName{LayerType::kSliding, "sliding_attention"},
                    EnumName{LayerType::kFull, "full_attention"}};
}

enum class RopeScaling { kNone, kYarn };
constexpr auto enum_table(RopeScaling) {
  return std::array{EnumName{RopeScaling::kNone, "none"}, EnumName{RopeScaling::kYarn, "yarn"}};
}

// How one layer type stretches its rotary embedding (YaRN: Peng et al. 2023, arXiv:2309.00071).
struct RopeConfig {
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 8;
  std::int64_t original_context = 8192;
  double beta_fast = 32;
  double beta_slow = 1;
  std::optional<double> attention_factor = std::nullopt;

  template <class V>
  void fields(V&& v) {
    v("scaling", scaling, "the remaining keys count with yarn only");
    v("factor", factor, "how many times longer the context becomes", {.min = 1});
    v("original_context", original_context, "positions before stretching", {.min = 1});
    v("beta_fast", beta_fast, "turns over the original context that stay as they are",
      {.min = 0, .above_min = true});
    v("beta_slow", beta_slow, "turns over the original context that are stretched in full",
      {.min = 0, .above_min = true});
    v("attention_factor", attention_factor,
      "multiplies sine and cosine; 0.1 ln(factor) + 1 when not set", {.min = 0, .above_min = true});
  }
  // What sine and cosine are multiplied by: 1 without scaling.
  [[nodiscard]] double cos_sin_scale() const;
  friend bool operator==(const RopeConfig&, const RopeConfig&) = default;
};

// [model]: the architecture. Derived sizes are functions; the member defaults are olmo3-190m.
struct ModelConfig {
  Preset preset = Preset::k190M;
  std::int64_t n_layers = 12;
  std::int64_t d_model = 768;
  std::int64_t n_heads = 12;
  std::int64_t n_kv_heads = 12;
  std::int64_t head_dim = 64;
  std::int64_t d_ff = 3072;
  std::int64_t vocab_size = 100278;
  std::optional<std::int64_t> padded_vocab_size = std::nullopt;
  std::int64_t context_length = 8192;
  double norm_eps = 1e-6;
  std::int64_t sliding_window = 4096;
  std::vector<LayerType> layer_pattern = {LayerType::kSliding, LayerType::kSliding,
                                          LayerType::kSliding, LayerType::kFull};
  std::vector<LayerType> layer_types = {};
  double rope_theta = 500000;
  RopeConfig rope_full = {};
  RopeConfig rope_sliding = {};
  bool rope_scaling_on_all_layers = false;
  double init_std = 0.02;
  std::int64_t eos_token_id = 100257;
  std::int64_t pad_token_id = 100277;

  template <class V>
  void fields(V&& v) {
    v("preset", preset, "sets every size of this section; the keys below then override it");
    v("n_layers", n_layers, "transformer blocks", {.min = 1, .max = 1024});
    v("d_model", d_model, "width of the residual stream", {.min = 1, .max = 65536});
    v("n_heads", n_heads, "query heads", {.min = 1, .max = 1024});
    v("n_kv_heads", n_kv_heads, "key and value heads; divides n_heads", {.min = 1, .max = 1024});
    v("head_dim", head_dim, "width of a head; even", {.min = 2, .max = 4096});
    v("d_ff", d_ff, "width of the MLP", {.min = 1, .max = 1048576});
    v("vocab_size", vocab_size, "token ids of the tokenizer", {.min = 2, .max = 16777216});
    v("padded_vocab_size", padded_vocab_size,
      "rows of the embedding and the head; vocab_size rounded up to 128 when not set",
      {.min = 2, .max = 16777216});
    v("context_length", context_length, "positions that the model is made for",
      {.min = 1, .max = 16777216});
    v("norm_eps", norm_eps, "added to the mean square in RMSNorm",
      {.min = 0, .max = 1, .above_min = true});
    v("sliding_window", sliding_window,
      "keys that a sliding layer's query sees, itself included; 0: all layers are full",
      {.min = 0, .max = 16777216});
    v("layer_pattern", layer_pattern, "attention of the layers, repeated");
    v("layer_types", layer_types, "attention of each layer; empty: layer_pattern repeated");
    v("rope_theta", rope_theta, "base of the rotary embedding", {.min = 1, .above_min = true});
    v("rope_full", rope_full, "rotary embedding of the full-attention layers");
    v("rope_sliding", rope_sliding, "rotary embedding of the sliding layers");
    v("rope_scaling_on_all_layers", rope_scaling_on_all_layers,
      "use rope_full on sliding layers too, as some published tooling does");
    v("init_std", init_std, "of the truncated normal (cut at 3 std) that weights start from",
      {.min = 0, .max = 10, .above_min = true});
    v("eos_token_id", eos_token_id, "the token that ends a document", {.min = 0});
    v("pad_token_id", pad_token_id, "the token that fills short instances; -1: none", {.min = -1});
  }

  // Sets the sizes that the preset names (all but vocabulary, rope scaling and init).
  void apply_preset();
  // Throws kConfig naming the key, the value and the rule.
  void validate() const;

  [[nodiscard]] std::int64_t q_width() const { return n_heads * head_dim; }
  [[nodiscard]] std::int64_t kv_width() const { return n_kv_heads * head_dim; }
  // Rows of the embedding and the head.
  [[nodiscard]] std::int64_t vocab_rows() const;
  [[nodiscard]] LayerType layer_type(std::int64_t layer) const;
  // Keys that a query of that layer sees at most in a sequence that long.
  [[nodiscard]] std::int64_t window(std::int64_t layer, std::int64_t sequence_length) const;
  // The scaling that holds for a layer, with rope_scaling_on_all_layers taken into account.
  [[nodiscard]] const RopeConfig& rope(std::int64_t layer) const;

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

}  // namespace lockstep
