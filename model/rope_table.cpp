#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep {
namespace {

const RopeConfig& scaling_of(const ModelConfig& config, LayerType type) {
  return type == LayerType::kFull || config.rope_scaling_on_all_layers ? config.rope_full
                                                                       : config.rope_sliding;
}

// theta^(2 i / K), fp32.
float period(const ModelConfig& config, std::int64_t i) {
  const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.head_dim);
  const auto theta = static_cast<double>(static_cast<float>(config.rope_theta));
  return static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
}

// The dimension whose rotary embedding makes `turns` turns over the original context.
double dimension_of(const ModelConfig& config, const RopeConfig& rope, double turns) {
  return static_cast<double>(config.head_dim) *
         std::log(static_cast<double>(rope.original_context) / (2 * std::numbers::pi * turns)) /
         (2 * std::log(config.rope_theta));
}

}  // namespace

RopeFrequencies rope_frequencies(const ModelConfig& config, LayerType type) {
  const RopeConfig& rope = scaling_of(config, type);
  const std::int64_t half = config.head_dim / 2;
  RopeFrequencies frequencies;
  frequencies.attention_factor = static_cast<float>(rope.cos_sin_scale());
  for (std::int64_t i = 0; i < half; ++i) {
    frequencies.inverse.push_back(1.0F / period(config, i));
  }
  if (rope.scaling == RopeScaling::kNone) return frequencies;

  const double low = std::max(std::floor(dimension_of(config, rope, rope.beta_fast)), 0.0);
  const double high = std::min(std::ceil(dimension_of(config, rope, rope.beta_slow)),
                               static_cast<double>(half - 1));
  const auto width = static_cast<float>(std::max(high - low, 1e-3));
  for (std::int64_t i = 0; i < half; ++i) {
    float& inverse = frequencies.inverse[static_cast<std::size_t>(i)];
    const float ramp =
        std::clamp((static_cast<float>(i) - static_cast<float>(low)) / width, 0.0F, 1.0F);
    const float keep = 1.0F - ramp;
    const float stretched = 1.0F / (static_cast<float>(rope.factor) * period(config, i));
    inverse = stretched * (1.0F - keep) + inverse * keep;
  }
  return frequencies;
}

namespace {

// Whether sliding and full layers rotate differently.
bool kinds_differ(const ModelConfig& config) {
  const RopeFrequencies full = rope_frequencies(config, LayerType::kFull);
  const RopeFrequencies sliding = rope_frequencies(config, LayerType::kSliding);
  return full.inverse != sliding.inverse || full.attention_factor != sliding.attention_factor;
}

RopeTable::Tables make_tables(const RopeFrequencies& frequencies, std::int64_t positions,
                              Arena& arena) {
  const auto half = static_cast<std::int64_t>(frequencies.inverse.size());
  const RopeTable::Tables tables{.cos = arena.take(DType::kF32, {positions, half}),
                                 .sin = arena.take(DType::kF32, {positions, half})};
  auto* cos = tables.cos.data<float>();
  auto* sin = tables.sin.data<float>();
  for (std::int64_t position = 0; position < positions; ++position) {
    for (const float inverse : frequencies.inverse) {
      const double phase = static_cast<double>(static_cast<float>(position) * inverse);
      *cos++ = static_cast<float>(std::cos(phase)) * frequencies.attention_factor;
      *sin++ = static_cast<float>(std::sin(phase)) * frequencies.attention_factor;
    }
  }
  return tables;
}

}  // namespace

RopeTable::RopeTable(const ModelConfig& config, std::int64_t positions)
    : positions_(positions), memory_(bytes(config, positions), "rotary tables") {
  Arena arena(memory_);
  full_ = make_tables(rope_frequencies(config, LayerType::kFull), positions, arena);
  sliding_ = kinds_differ(config)
                 ? make_tables(rope_frequencies(config, LayerType::kSliding), positions, arena)
                 : full_;
}

std::int64_t RopeTable::bytes(const ModelConfig& config, std::int64_t positions) {
  Arena arena;
  const int tables = kinds_differ(config) ? 4 : 2;
  for (int i = 0; i < tables; ++i) {
    static_cast<void>(arena.take(DType::kF32, {positions, config.head_dim / 2}));
  }
  return arena.peak();
}

}  // namespace lockstep
