#include "model/parameters.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "model/counts.h"
#include "model/init.h"
#include "tensor/buffer.h"

namespace lockstep {
namespace {

ModelConfig odd_sizes() {
  ModelConfig config;
  config.preset = Preset::kCustom;
  config.n_layers = 2;
  config.d_model = 7;
  config.n_heads = 3;
  config.n_kv_heads = 1;
  config.head_dim = 6;
  config.d_ff = 5;
  config.vocab_size = 30;
  config.padded_vocab_size = 33;
  config.eos_token_id = 0;
  config.pad_token_id = 1;
  return config;
}

TEST(ParameterTable, HasTheHuggingFaceTensorsOfTheModel) {
  ModelConfig config;
  config.preset = Preset::k7B;
  config.apply_preset();
  const ParameterTable table(config);
  EXPECT_EQ(table.parameters().size(), 355U);
  EXPECT_EQ(table.count(), parameter_count(config));
  EXPECT_EQ(table.at("model.layers.31.self_attn.k_proj.weight").shape,
            (std::vector<std::int64_t>{4096, 4096}));
  EXPECT_EQ(table.at("model.layers.0.mlp.down_proj.weight").shape,
            (std::vector<std::int64_t>{4096, 11008}));
  EXPECT_EQ(table.at("lm_head.weight").shape, (std::vector<std::int64_t>{100352, 4096}));
  EXPECT_EQ(table.find("model.layers.32.mlp.down_proj.weight"), nullptr);
}

TEST(ParameterTable, StacksWhatIsOneProductAndAlignsEachGroup) {
  const ModelConfig config = odd_sizes();
  const ParameterTable table(config);
  Buffer memory(table.size() * 4, "test");
  const View flat(memory.data(), DType::kF32, {table.size()});
  const BlockTensors block = table.block(flat, 1);
  EXPECT_EQ(block.qkv.describe(), "f32 [30, 7]");
  EXPECT_EQ(block.gate_up.describe(), "f32 [10, 7]");
  const std::string prefix = "model.layers.1.";
  const auto at = [&](const std::string& name) {
    return table.tensor(flat, prefix + name).data<float>();
  };
  EXPECT_EQ(block.qkv.data<float>(), at("self_attn.q_proj.weight"));
  EXPECT_EQ(block.qkv.data<float>() + 18 * 7, at("self_attn.k_proj.weight"));
  EXPECT_EQ(block.qkv.data<float>() + 24 * 7, at("self_attn.v_proj.weight"));
  EXPECT_EQ(block.gate_up.data<float>() + 5 * 7, at("mlp.up_proj.weight"));
  EXPECT_EQ(block.down.data<float>(), at("mlp.down_proj.weight"));
  EXPECT_EQ(block.feed_forward_norm.data<float>(), at("post_feedforward_layernorm.weight"));
  for (const View& start :
       {block.qkv, block.q_norm, block.k_norm, block.attention_out, block.attention_norm,
        block.gate_up, block.down, block.feed_forward_norm, table.outer(flat).head}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(start.raw()) % 64, 0U);
  }
  std::set<std::int64_t> taken;
  for (const Parameter& parameter : table.parameters()) {
    for (std::int64_t i = 0; i < parameter.size; ++i) {
      EXPECT_TRUE(taken.insert(parameter.offset + i).second) << parameter.name;
    }
  }
  EXPECT_LT(*taken.rbegin(), table.size());
}

TEST(ParameterTable, DecaysAllButTheEmbedding) {
  const ParameterTable table(odd_sizes());
  for (const Parameter& parameter : table.parameters()) {
    EXPECT_EQ(parameter.decay, parameter.name != "model.embed_tokens.weight") << parameter.name;
    EXPECT_EQ(parameter.decay, parameter.offset >= table.decay_begin()) << parameter.name;
  }
}

TEST(Initialise, IsAFunctionOfSeedNameAndElement) {
  const ParameterTable table(odd_sizes());
  Buffer memory(table.size() * 4, "test");
  const View flat(memory.data(), DType::kF32, {table.size()});
  ThreadPool pool(3);
  initialise(table, {.seed = 9}, flat, pool);
  for (const Parameter& parameter : table.parameters()) {
    const auto* values = table.tensor(flat, parameter).data<float>();
    for (std::int64_t i = 0; i < parameter.size; ++i) {
      float alone = 0;
      initial_values(parameter, {.seed = 9}, i, {&alone, 1});
      ASSERT_EQ(values[i], alone) << parameter.name << " " << i;
      ASSERT_LE(std::abs(values[i]), parameter.is_gain() ? 1.0F : 0.06F);
    }
  }
  const auto* q = table.tensor(flat, "model.layers.0.self_attn.q_proj.weight").data<float>();
  const auto* next = table.tensor(flat, "model.layers.1.self_attn.q_proj.weight").data<float>();
  EXPECT_NE(q[0], next[0]);
  float other_seed = 0;
  initial_values(table.at("model.layers.0.self_attn.q_proj.weight"), {.seed = 10}, 0,
                 {&other_seed, 1});
  EXPECT_NE(q[0], other_seed);
}

}  // namespace
}  // namespace lockstep
