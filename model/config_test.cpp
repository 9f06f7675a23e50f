#include "model/config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "config/compare.h"
#include "config/print.h"
#include "config/read.h"
#include "model/counts.h"

namespace lockstep {
namespace {

// [model] is read inside a recipe; here alone.
struct Holder {
  ModelConfig model;
  template <class V>
  void fields(V&& v) {
    v("model", model, "");
  }
  void validate() const { model.validate(); }
};

ModelConfig read(const std::string& toml) { return read_config<Holder>(toml, "t.toml").model; }

ModelConfig of(Preset preset) {
  ModelConfig config;
  config.preset = preset;
  config.apply_preset();
  return config;
}

TEST(ModelConfig, PresetsHaveThePublishedParameterCounts) {
  // Millions with 100352 rows, and the same without the input embedding, to the digits published.
  struct Row {
    Preset preset;
    double total, non_embedding, unit;
  };
  const std::vector<Row> rows = {
      {Preset::k1M, 2.4, 1.2, 0.1},       {Preset::k14M, 26.7, 13.9, 0.1},
      {Preset::k30M, 54.8, 29.1, 0.1},    {Preset::k60M, 96.0, 57.4, 0.1},
      {Preset::k100M, 153.1, 101.7, 0.1}, {Preset::k190M, 267.4, 190.4, 0.1},
      {Preset::k370M, 474.0, 371.3, 0.1}, {Preset::k600M, 676.4, 548.0, 0.1},
      {Preset::k760M, 912.4, 758.2, 0.1}, {Preset::k1B, 1484.9, 1279.4, 0.1},
      {Preset::k3B, 3503.5, 3169.5, 0.1}, {Preset::k7B, 7298.6, 6887.6, 0.1},
      {Preset::k13B, 13720, 13200, 10},   {Preset::k32B, 32230, 0, 10}};
  ASSERT_EQ(rows.size() + 1, enum_table(Preset{}).size());
  for (const Row& row : rows) {
    const ModelConfig config = of(row.preset);
    const ParameterCounts counts = parameter_counts(config, 100352);
    EXPECT_EQ(config.vocab_rows(), 100352);
    EXPECT_NEAR(static_cast<double>(counts.total()) / 1e6, row.total, row.unit * 0.51)
        << to_name(row.preset);
    if (row.non_embedding > 0) {
      EXPECT_NEAR(static_cast<double>(counts.non_embedding()) / 1e6, row.non_embedding,
                  row.unit * 0.51)
          << to_name(row.preset);
    }
  }
}

TEST(ModelConfig, SevenBillionCountsExactly) {
  // 32 (4 * 4096^2 + 4 * 4096 + 3 * 4096 * 11008) + 4096 + 2 * 4096 * rows, by hand.
  EXPECT_EQ(parameter_count(of(Preset::k7B)), 7'298'617'344);
  EXPECT_EQ(parameter_counts(of(Preset::k7B), 100278).total(), 7'298'011'136);
}

TEST(ModelConfig, FlopsOfSevenBillionUnderThreeFormulas) {
  const StepFlops flops = instance_flops(of(Preset::k7B), 8192);
  EXPECT_NEAR(flops.maxtext / 1e12, 391.27, 0.005);
  EXPECT_NEAR(flops.window_exact / 1e12, 381.38, 0.005);
  EXPECT_NEAR(flops.olmo_core / 1e12, 404.5, 0.05);
}

TEST(ModelConfig, LayersFollowPatternUnlessTypesAreGiven) {
  ModelConfig config = of(Preset::k14M);
  config.n_layers = 5;
  EXPECT_EQ(config.layer_type(2), LayerType::kSliding);
  EXPECT_EQ(config.layer_type(3), LayerType::kFull);
  EXPECT_EQ(config.layer_type(4), LayerType::kSliding);
  config.layer_types.assign(5, LayerType::kFull);
  EXPECT_EQ(config.layer_type(4), LayerType::kFull);
  EXPECT_EQ(config.window(4, 9000), 9000);
  config.layer_types.clear();
  EXPECT_EQ(config.window(4, 9000), 4096);
  EXPECT_EQ(config.window(4, 100), 100);
  config.sliding_window = 0;
  EXPECT_EQ(config.window(4, 9000), 9000);
  EXPECT_THROW((void)config.layer_type(5), Error);
}

TEST(ModelConfig, YarnHoldsForFullLayersUnlessTheSwitchIsOn) {
  ModelConfig config = of(Preset::k7B);
  config.rope_full.scaling = RopeScaling::kYarn;
  EXPECT_NEAR(config.rope_full.cos_sin_scale(), 1.2079441541679836, 1e-15);
  EXPECT_EQ(config.rope(0).scaling, RopeScaling::kNone);
  EXPECT_EQ(config.rope(0).cos_sin_scale(), 1);
  EXPECT_EQ(config.rope(3).scaling, RopeScaling::kYarn);
  config.rope_scaling_on_all_layers = true;
  EXPECT_EQ(config.rope(0).scaling, RopeScaling::kYarn);
}

TEST(ModelConfig, PresetThenOverrides) {
  const ModelConfig config =
      read("[model]\nn_heads = 16\nhead_dim = 256\nn_kv_heads = 16\npreset = \"olmo3-7b\"\n");
  EXPECT_EQ(config.d_model, 4096);
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(parameter_count(config), 7'298'617'344);
}

TEST(ModelConfig, DefaultsAreTheDefaultPreset) {
  EXPECT_EQ(ModelConfig{}, of(ModelConfig{}.preset));
}

TEST(ModelConfig, PrintedFormReadsBack) {
  Holder holder{.model = of(Preset::k32B)};
  holder.model.layer_types.assign(64, LayerType::kFull);
  holder.model.pad_token_id = -1;
  EXPECT_EQ(read(config_toml(holder)), holder.model);
}

TEST(ModelConfig, RefusesSizesThatDoNotFit) {
  EXPECT_THROW((void)read("[model]\nn_kv_heads = 5\n"), Error);
  EXPECT_THROW((void)read("[model]\nhead_dim = 63\n"), Error);
  EXPECT_THROW((void)read("[model]\npadded_vocab_size = 100277\n"), Error);
  EXPECT_THROW((void)read("[model]\nlayer_pattern = []\n"), Error);
  EXPECT_THROW((void)read("[model]\nlayer_types = [\"full_attention\"]\n"), Error);
  EXPECT_THROW((void)read("[model]\nvocab_size = 1000\n"), Error);
  EXPECT_THROW((void)read("[model]\npreset = \"olmo3-8b\"\n"), Error);
}

}  // namespace
}  // namespace lockstep
