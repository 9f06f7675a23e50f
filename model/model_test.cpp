#include "model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <tuple>
#include <vector>

#include "base/rng.h"
#include "model/init.h"

namespace lockstep {
namespace {

// Small, with everything that the family has: grouped heads, head_dim not d/H, an odd number of
// layers of both kinds, YaRN on one kind, padded rows.
ModelConfig toy() {
  ModelConfig config;
  config.preset = Preset::kCustom;
  config.n_layers = 3;
  config.d_model = 40;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 12;
  config.d_ff = 56;
  config.vocab_size = 91;
  config.padded_vocab_size = 96;
  config.context_length = 64;
  config.sliding_window = 5;
  config.layer_types = {LayerType::kSliding, LayerType::kFull, LayerType::kSliding};
  config.rope_full.scaling = RopeScaling::kYarn;
  config.rope_full.original_context = 16;
  config.rope_full.factor = 4;
  config.eos_token_id = 0;
  config.pad_token_id = 1;
  config.init_std = 0.1;
  return config;
}

// A leaf of B sequences of T positions with its own memory.
struct LeafMemory {
  LeafMemory(std::int64_t B, std::int64_t T, std::int64_t vocab, std::uint64_t seed = 3)
      : shape{B, T} {
    const CounterRng rng(seed, "tokens");
    for (std::int64_t i = 0; i < B * T; ++i) {
      tokens.push_back(static_cast<std::int32_t>(rng.u64(static_cast<std::uint64_t>(i)) %
                                                 static_cast<std::uint64_t>(vocab)));
      segments.push_back(static_cast<std::int32_t>(i % T / 7));
    }
    for (std::int64_t i = 0; i < B * T; ++i) {
      const bool last = i % T == T - 1;
      targets.push_back(last || i % 11 == 4 ? -1 : tokens[static_cast<std::size_t>(i + 1)]);
    }
  }
  Leaf leaf() { return {.tokens = view(tokens), .targets = view(targets), .segments = {}}; }
  Leaf segmented() {
    return {.tokens = view(tokens), .targets = view(targets), .segments = view(segments)};
  }
  View view(std::vector<std::int32_t>& ids) const {
    return {ids.data(), DType::kI32, {shape.sequences, shape.positions}};
  }

  LeafShape shape;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
  std::vector<std::int32_t> segments;
};

std::unique_ptr<Model> make_model(const ModelConfig& config, const ModelOptions& options,
                                  CpuStream& stream) {
  auto model = std::make_unique<Model>(config, options, stream);
  initialise(model->table(), {.seed = 5, .std = config.init_std}, model->weights(), stream.pool());
  // Gains off one, so that a forgotten gain shows.
  for (const Parameter& parameter : model->table().parameters()) {
    if (!parameter.is_gain()) continue;
    auto* gain = model->table().tensor(model->weights(), parameter).data<float>();
    for (std::int64_t i = 0; i < parameter.size; ++i) {
      gain[i] = 1.0F + 0.02F * static_cast<float>(i % 7 - 3);
    }
  }
  model->refresh();
  return model;
}

struct Gradient {
  explicit Gradient(const Model& model) : values(static_cast<std::size_t>(model.table().size())) {}
  View view() { return {values.data(), DType::kF32, {std::ssize(values)}}; }
  std::vector<float> values;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<float> logits_of(Model& model, std::int64_t rows) {
  const std::int64_t V = model.config().vocab_rows();
  std::vector<float> logits(static_cast<std::size_t>(rows * V));
  model.logits(0, {logits.data(), DType::kF32, {rows, V}});
  return logits;
}

class ModelIn : public testing::TestWithParam<Precision> {};

INSTANTIATE_TEST_SUITE_P(Precisions, ModelIn, testing::Values(Precision::kFp32, Precision::kBf16),
                         [](const auto& tested) { return to_name(tested.param); });

TEST_P(ModelIn, RematerialisationKeepsEveryBitAndLowersMemory) {
  CpuStream stream(1);
  const ModelConfig config = toy();
  LeafMemory leaf(2, 37, config.vocab_size);
  const auto run = [&](Remat remat) {
    const auto model = make_model(config, {.precision = GetParam(), .remat = remat}, stream);
    Gradient gradient(*model);
    const LossSums sums =
        model->forward_backward(leaf.segmented(), {.scale = 0.1F}, gradient.view());
    return std::tuple(sums.ce, sums.z, gradient.values, model->activation_bytes());
  };
  const auto [ce, z, gradient, bytes] = run(Remat::kNone);
  std::int64_t fewest = bytes;
  for (const Remat remat : {Remat::kMlp, Remat::kAttention, Remat::kFull}) {
    const auto [other_ce, other_z, other_gradient, other_bytes] = run(remat);
    EXPECT_EQ(other_ce, ce) << to_name(remat);
    EXPECT_EQ(other_z, z) << to_name(remat);
    EXPECT_TRUE(same_bits(other_gradient, gradient)) << to_name(remat);
    EXPECT_LT(other_bytes, bytes) << to_name(remat);
    EXPECT_EQ(other_bytes,
              activation_bytes(config, leaf.shape, Pass::kTraining, remat, GetParam()));
    fewest = std::min(fewest, other_bytes);
  }
  EXPECT_EQ(fewest,
            activation_bytes(config, leaf.shape, Pass::kTraining, Remat::kFull, GetParam()));
}

TEST_P(ModelIn, ResultsDoNotDependOnThreads) {
  const ModelConfig config = toy();
  LeafMemory leaf(3, 29, config.vocab_size);
  const auto run = [&](int threads) {
    CpuStream stream(threads);
    const auto model = make_model(config, {.precision = GetParam()}, stream);
    Gradient gradient(*model);
    const LossSums sums = model->forward_backward(leaf.leaf(), {.scale = 0.1F}, gradient.view());
    return std::tuple(sums.ce, sums.z, gradient.values);
  };
  const auto [ce, z, gradient] = run(1);
  for (const int threads : {2, 3}) {
    const auto [other_ce, other_z, other_gradient] = run(threads);
    EXPECT_EQ(other_ce, ce);
    EXPECT_EQ(other_z, z);
    EXPECT_TRUE(same_bits(other_gradient, gradient)) << threads;
  }
}

// What the tree of leaves rests on: a leaf that is added to another gives the bits of the sum of
// their gradients.
TEST_P(ModelIn, AddedGradientsAreTheSumOfGradients) {
  CpuStream stream(2);
  const ModelConfig config = toy();
  const auto model = make_model(config, {.precision = GetParam()}, stream);
  LeafMemory first(2, 37, config.vocab_size);
  LeafMemory second(1, 41, config.vocab_size);
  Gradient of_first(*model);
  Gradient of_second(*model);
  Gradient both(*model);
  model->forward_backward(first.segmented(), {.scale = 0.1F}, of_first.view());
  model->forward_backward(first.segmented(), {.scale = 0.1F}, both.view());
  model->forward_backward(second.leaf(), {.scale = 0.1F}, of_second.view());
  model->forward_backward(second.leaf(), {.scale = 0.1F}, both.view(), ops::Accumulate::kAdd);
  std::vector<float> sum = of_first.values;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += of_second.values[i];
  EXPECT_TRUE(same_bits(both.values, sum));
  EXPECT_FALSE(same_bits(both.values, of_first.values));
}

TEST_P(ModelIn, SequencesOfALeafAreIndependent) {
  CpuStream stream(2);
  const ModelConfig config = toy();
  const auto model = make_model(config, {.precision = GetParam()}, stream);
  constexpr std::int64_t kPositions = 23;
  LeafMemory together(8, kPositions, config.vocab_size);
  model->forward(together.leaf());
  const std::vector<float> all = logits_of(*model, together.shape.tokens());
  for (std::int64_t b = 0; b < 8; ++b) {
    std::vector<std::int32_t> one(together.tokens.begin() + b * kPositions,
                                  together.tokens.begin() + (b + 1) * kPositions);
    model->forward(
        {.tokens = {one.data(), DType::kI32, {1, kPositions}}, .targets = {}, .segments = {}});
    const std::vector<float> alone = logits_of(*model, kPositions);
    const auto begin = all.begin() + b * std::ssize(alone);
    EXPECT_TRUE(same_bits(alone, {begin, begin + std::ssize(alone)})) << b;
  }
}

TEST_P(ModelIn, TheCacheGivesTheBitsOfTheWholeSequence) {
  CpuStream stream(2);
  const ModelConfig config = toy();
  const auto model =
      make_model(config, {.precision = GetParam(), .use = Weights::Use::kForward}, stream);
  constexpr std::int64_t kPositions = 33;
  LeafMemory leaf(1, kPositions, config.vocab_size);
  model->forward(leaf.leaf());
  const std::vector<float> whole = logits_of(*model, kPositions);
  KvCache cache(config, GetParam(), 1, kPositions);
  std::vector<float> pieces;
  for (const std::int64_t count : {17, 1, 1, 9, 5}) {
    model->extend(cache, leaf.leaf().tokens.slice(1, cache.length(), count).reshape({1, count}));
    const std::vector<float> part = logits_of(*model, count);
    pieces.insert(pieces.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(same_bits(pieces, whole));
}

TEST_P(ModelIn, LossAloneIsTheLossOfTraining) {
  CpuStream stream(2);
  const ModelConfig config = toy();
  const auto model = make_model(config, {.precision = GetParam()}, stream);
  LeafMemory leaf(2, 31, config.vocab_size);
  Gradient gradient(*model);
  const LossSums trained = model->forward_backward(leaf.leaf(), {}, gradient.view());
  const LossSums alone = model->forward_loss(leaf.leaf(), config.vocab_rows());
  EXPECT_EQ(alone.ce, trained.ce);
  EXPECT_EQ(alone.z, trained.z);
  EXPECT_EQ(alone.count, trained.count);
  EXPECT_EQ(alone.count, std::count_if(leaf.targets.begin(), leaf.targets.end(),
                                       [](std::int32_t target) { return target >= 0; }));
  // Without the padded rows' mass the loss falls.
  EXPECT_LT(model->forward_loss(leaf.leaf(), config.vocab_size).ce, alone.ce);
}

TEST_P(ModelIn, AMaskedSequenceHasNoGradient) {
  CpuStream stream(1);
  const ModelConfig config = toy();
  const auto model = make_model(config, {.precision = GetParam()}, stream);
  LeafMemory leaf(2, 19, config.vocab_size);
  Gradient masked(*model);
  std::fill_n(leaf.targets.begin(), 19, -1);
  model->forward_backward(leaf.leaf(), {}, masked.view());
  // Other tokens there change nothing.
  for (std::size_t i = 0; i < 19; ++i) leaf.tokens[i] = (leaf.tokens[i] + 1) % 91;
  Gradient changed(*model);
  model->forward_backward(leaf.leaf(), {}, changed.view());
  for (const Parameter& parameter : model->table().parameters()) {
    const auto* a = model->table().tensor(masked.view(), parameter).data<float>();
    const auto* b = model->table().tensor(changed.view(), parameter).data<float>();
    for (std::int64_t i = 0; i < parameter.size; ++i) {
      ASSERT_EQ(a[i], b[i]) << parameter.name << " " << i;
    }
  }
}

// The derivative along each tensor's own gradient by central differences. The weights move by
// kDistance each way, so the loss by 2 kDistance norm; its mean over 38 rows of fp32 losses of
// about 4.5 is good to about 2^-22 of it, and the third derivative adds a part that 1e-3 covers.
TEST(Model, GradientMatchesDifferences) {
  CpuStream stream(2);
  const ModelConfig config = toy();
  const auto model = make_model(config, {.precision = Precision::kFp32}, stream);
  LeafMemory leaf(2, 21, config.vocab_size);
  Gradient gradient(*model);
  constexpr float kZ = 1e-2F;
  const auto count = model->forward_loss(leaf.segmented(), config.vocab_rows()).count;
  const float scale = 1.0F / static_cast<float>(count);
  model->forward_backward(leaf.segmented(), {.scale = scale, .z_coefficient = kZ}, gradient.view());
  const auto loss = [&] {
    model->refresh();
    const LossSums sums = model->forward_loss(leaf.segmented(), config.vocab_rows());
    return (sums.ce + static_cast<double>(kZ) * sums.z) / static_cast<double>(sums.count);
  };
  for (const Parameter& parameter : model->table().parameters()) {
    const auto* g = model->table().tensor(gradient.view(), parameter).data<float>();
    auto* w = model->table().tensor(model->weights(), parameter).data<float>();
    double norm_squared = 0;
    for (std::int64_t i = 0; i < parameter.size; ++i) {
      norm_squared += static_cast<double>(g[i]) * static_cast<double>(g[i]);
    }
    const double norm = std::sqrt(norm_squared);
    ASSERT_GT(norm, 0) << parameter.name;
    const std::vector<float> before(w, w + parameter.size);
    constexpr double kDistance = 4e-3;
    const double step = kDistance / norm;
    const auto move = [&](double by) {
      for (std::int64_t i = 0; i < parameter.size; ++i) {
        w[i] = static_cast<float>(static_cast<double>(before[static_cast<std::size_t>(i)]) +
                                  by * static_cast<double>(g[i]));
      }
      return loss();
    };
    const double derivative = (move(step) - move(-step)) / (2 * step);
    std::copy(before.begin(), before.end(), w);
    EXPECT_NEAR(derivative / norm_squared, 1.0, 1e-3 + 4.5 * 0x1p-22 / (2 * kDistance * norm))
        << parameter.name;
  }
}

TEST(Model, GapsOfTheGradientAreNotWritten) {
  CpuStream stream(1);
  ModelConfig config = toy();
  config.d_model = 13;
  config.head_dim = 6;
  config.d_ff = 7;
  const auto model = make_model(config, {.precision = Precision::kBf16}, stream);
  LeafMemory leaf(1, 9, config.vocab_size);
  Gradient gradient(*model);
  std::fill(gradient.values.begin(), gradient.values.end(), 77.0F);
  model->forward_backward(leaf.leaf(), {}, gradient.view());
  std::vector<bool> in_tensor(gradient.values.size());
  for (const Parameter& parameter : model->table().parameters()) {
    for (std::int64_t i = 0; i < parameter.size; ++i) {
      in_tensor[static_cast<std::size_t>(parameter.offset + i)] = true;
    }
  }
  EXPECT_NE(model->table().count(), model->table().size());
  for (std::size_t i = 0; i < in_tensor.size(); ++i) {
    ASSERT_EQ(gradient.values[i] == 77.0F, !in_tensor[i]) << i;
  }
}

TEST(Model, TokensOutsideTheVocabularyAreRefused) {
  CpuStream stream(1);
  const ModelConfig config = toy();
  const auto model = make_model(config, {}, stream);
  LeafMemory leaf(1, 5, config.vocab_size);
  leaf.tokens[3] = 96;
  try {
    model->forward(leaf.leaf());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
  }
}

}  // namespace
}  // namespace lockstep
