#include "model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

ModelConfig long_context() {
  ModelConfig config;
  config.head_dim = 128;
  config.rope_full.scaling = RopeScaling::kYarn;
  return config;
}

TEST(RopeFrequencies, ArePowersOfTheta) {
  const RopeFrequencies plain = rope_frequencies(long_context(), LayerType::kSliding);
  ASSERT_EQ(plain.inverse.size(), 64U);
  EXPECT_EQ(plain.attention_factor, 1.0F);
  EXPECT_EQ(plain.inverse[0], 1.0F);
  for (std::size_t i = 0; i < 64; ++i) {
    const double exact = std::pow(500000.0, -static_cast<double>(2 * i) / 128);
    // The exponent, the power and the quotient are rounded to fp32; the exponent's error grows by
    // ln theta = 13.
    EXPECT_NEAR(plain.inverse[i] / exact, 1.0, 16 * 0x1p-24) << i;
  }
}

// Head width 128, theta 5e5, 8192 -> 65536: dims 18 to 35 are blended, those below stay, those
// above are divided by 8 (facts of the released 64k models).
TEST(RopeFrequencies, YarnStretchesTheSlowDimensions) {
  const ModelConfig config = long_context();
  const RopeFrequencies plain = rope_frequencies(config, LayerType::kSliding);
  const RopeFrequencies yarn = rope_frequencies(config, LayerType::kFull);
  EXPECT_FLOAT_EQ(yarn.attention_factor, 1.2079441541679836F);
  for (std::size_t i = 0; i < 64; ++i) {
    const double ratio = static_cast<double>(yarn.inverse[i]) / plain.inverse[i];
    const double ramp = std::clamp((static_cast<double>(i) - 18) / 17, 0.0, 1.0);
    EXPECT_NEAR(ratio, ramp / 8 + 1 - ramp, 1e-6) << i;
  }
}

TEST(RopeTable, SlidingLayersArePlainUnlessAsked) {
  ModelConfig config = long_context();
  const RopeTable table(config, 8);
  EXPECT_NE(table.of(LayerType::kFull).cos.raw(), table.of(LayerType::kSliding).cos.raw());
  EXPECT_EQ(table.of(LayerType::kSliding).cos.data<float>()[0], 1.0F);
  EXPECT_FLOAT_EQ(table.of(LayerType::kFull).cos.data<float>()[0], 1.2079441F);
  const float* sin = table.of(LayerType::kSliding).sin.data<float>();
  EXPECT_FLOAT_EQ(sin[3 * 64], std::sin(3.0F));

  config.rope_scaling_on_all_layers = true;
  const RopeTable all(config, 8);
  EXPECT_EQ(all.of(LayerType::kFull).cos.raw(), all.of(LayerType::kSliding).cos.raw());
  EXPECT_LT(RopeTable::bytes(config, 8), RopeTable::bytes(long_context(), 8));
}

}  // namespace
}  // namespace lockstep
