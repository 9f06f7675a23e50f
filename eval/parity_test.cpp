#include "eval/parity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/init.h"

namespace lockstep {
namespace {

ModelConfig toy(std::int64_t rows) {
  ModelConfig config;
  config.preset = Preset::kCustom;
  config.n_layers = 1;
  config.d_model = 16;
  config.n_heads = 2;
  config.n_kv_heads = 2;
  config.head_dim = 8;
  config.d_ff = 24;
  config.vocab_size = 30;
  config.padded_vocab_size = rows;
  config.eos_token_id = 28;
  config.pad_token_id = 29;
  return config;
}

std::unique_ptr<Model> model_of(const ModelConfig& config, CpuStream& stream) {
  auto model = std::make_unique<Model>(config, ModelOptions{.precision = Precision::kFp32}, stream);
  initialise(model->table(), {.seed = 2, .std = 0.3}, model->weights(), stream.pool());
  model->refresh();
  return model;
}

std::vector<std::int32_t> tokens(std::int64_t count) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>(i * i % 29));
  return ids;
}

TEST(Parity, AModelEqualsItselfWhateverItsPadding) {
  CpuStream stream(2);
  const auto padded = model_of(toy(32), stream);
  const auto unpadded = model_of(toy(30), stream);
  const ParityReport report =
      measure_parity(*padded, reference_from_model(*unpadded, tokens(3 * 70), 3), stream);
  EXPECT_EQ(report.compared, 210);
  EXPECT_EQ(report.vocab, 30);
  EXPECT_EQ(report.logit_max_abs, 0);
  EXPECT_LT(std::abs(report.kl_mean), 1e-15);
  EXPECT_EQ(report.top1, 1);
  EXPECT_FALSE(report.gradient_error_max().has_value());
}

TEST(Parity, MeasuresAKnownDistance) {
  CpuStream stream(1);
  const auto model = model_of(toy(32), stream);
  Reference reference;
  reference.sequences = 1;
  reference.positions = 5;
  reference.compared = 2;
  reference.vocab = 3;  // smaller than the model's
  reference.tokens = tokens(5);
  std::vector<float> ours(5 * 32);
  model->forward(
      {.tokens = {reference.tokens.data(), DType::kI32, {1, 5}}, .targets = {}, .segments = {}});
  model->logits(0, {ours.data(), DType::kF32, {5, 32}});
  reference.logits = [&](std::int64_t, std::int64_t first, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto row = static_cast<std::size_t>(first) + i / 3;
      out[i] = ours[row * 32 + i % 3] + (row == 4 && i % 3 == 0 ? 2.0F : 0.0F);
    }
  };
  const ParityReport report = measure_parity(*model, reference, stream);
  EXPECT_EQ(report.compared, 2);
  EXPECT_NEAR(report.logit_max_abs, 2, 1e-6);
  std::vector<double> q;
  std::vector<double> p;
  for (std::size_t v = 0; v < 3; ++v) {
    q.push_back(std::exp(static_cast<double>(ours[4 * 32 + v])));
    p.push_back(q.back() * (v == 0 ? std::exp(2.0) : 1));
  }
  double kl = 0;
  for (std::size_t v = 0; v < 3; ++v) {
    const double share = p[v] / (p[0] + p[1] + p[2]);
    kl += share * std::log(share / (q[v] / (q[0] + q[1] + q[2])));
  }
  EXPECT_NEAR(report.kl_max, kl, 1e-6);
  EXPECT_NEAR(report.kl_mean, kl / 2, 1e-6);
}

TEST(Parity, RefusesAReferenceOfAnotherModel) {
  CpuStream stream(1);
  const auto model = model_of(toy(32), stream);
  Reference reference = reference_from_model(*model, tokens(4), 1);
  reference.targets = {1, 2, 3, -1};
  reference.gradients.push_back(
      {.name = "model.layers.7.mlp.down_proj.weight", .elements = 1, .read = {}});
  EXPECT_THROW(static_cast<void>(measure_parity(*model, reference, stream)), Error);
  reference.gradients[0].name = "model.norm.weight";
  EXPECT_THROW(static_cast<void>(measure_parity(*model, reference, stream)), Error);
  reference = reference_from_model(*model, {1, 2, 99}, 1);
  EXPECT_THROW(static_cast<void>(measure_parity(*model, reference, stream)), Error);
}

}  // namespace
}  // namespace lockstep
