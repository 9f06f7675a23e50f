#include "eval/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "model/init.h"

namespace lockstep {
namespace {

const std::vector<float> kLogits = {1.0F, 3.0F, 3.0F, -2.0F, 9.0F};

TEST(SampleToken, GreedyTakesTheLowestOfTheLikeliestAndNoForbiddenOne) {
  EXPECT_EQ(sample_token(kLogits, {}, 0, -1), 4);
  EXPECT_EQ(sample_token(kLogits, {}, 0, 4), 1);
}

TEST(SampleToken, FrequenciesAreTheSoftmaxOfTheTemperature) {
  constexpr int kDraws = 20000;
  std::map<std::int32_t, int> seen;
  for (int i = 0; i < kDraws; ++i) {
    ++seen[sample_token(kLogits, {.temperature = 2, .seed = 8}, i, 4)];
  }
  const double total = std::exp(0.5) + 2 * std::exp(1.5) + std::exp(-1.0);
  // Five standard deviations of a binomial share.
  EXPECT_NEAR(seen[0] / double{kDraws}, std::exp(0.5) / total, 5 * 0.5 / std::sqrt(kDraws));
  EXPECT_NEAR(seen[1] / double{kDraws}, std::exp(1.5) / total, 5 * 0.5 / std::sqrt(kDraws));
  EXPECT_NEAR(seen[2] / double{kDraws}, std::exp(1.5) / total, 5 * 0.5 / std::sqrt(kDraws));
  EXPECT_EQ(seen.count(4), 0U);
}

TEST(SampleToken, TopPKeepsTheFewestThatHoldIt) {
  for (int i = 0; i < 500; ++i) {
    // Of the rest each 3.0 holds 0.46, so 0.9 needs both and 0.3 the first alone.
    const auto both = sample_token(kLogits, {.temperature = 1, .top_p = 0.9}, i, 4);
    EXPECT_TRUE(both == 1 || both == 2) << both;
    EXPECT_EQ(sample_token(kLogits, {.temperature = 1, .top_p = 0.3}, i, 4), 1);
    EXPECT_EQ(sample_token(kLogits, {.temperature = 1, .top_p = 0}, i, 4), 1);
  }
}

TEST(SampleToken, RefusesNaN) {
  EXPECT_THROW(static_cast<void>(sample_token(std::vector<float>{0.0F, NAN}, {}, 0, -1)), Error);
}

struct Fixture {
  Fixture() : model(config(), {.precision = Precision::kFp32}, stream) {
    initialise(model.table(), {.seed = 2, .std = 0.3}, model.weights(), stream.pool());
    model.refresh();
  }
  static ModelConfig config() {
    ModelConfig config;
    config.preset = Preset::kCustom;
    config.n_layers = 2;
    config.d_model = 16;
    config.n_heads = 2;
    config.n_kv_heads = 2;
    config.head_dim = 8;
    config.d_ff = 24;
    config.vocab_size = 30;
    config.padded_vocab_size = 32;
    config.eos_token_id = 28;
    config.pad_token_id = 29;
    return config;
  }
  CpuStream stream{1};
  Model model;
};

TEST(Generate, GreedyIsTheArgmaxOfTheWholeSequenceEachTime) {
  Fixture f;
  std::vector<std::int32_t> sequence(300);  // more than one piece of the prompt
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    sequence[i] = static_cast<std::int32_t>(i * i % 27);
  }
  const auto ids = generate(f.model, sequence, {.max_tokens = 6, .stop_at_eos = false}, {});
  ASSERT_EQ(ids.size(), 6U);
  for (const std::int32_t id : ids) {
    const std::int64_t T = std::ssize(sequence);
    f.model.forward(
        {.tokens = {sequence.data(), DType::kI32, {1, T}}, .targets = {}, .segments = {}});
    std::vector<float> logits(32);
    f.model.logits(T - 1, {logits.data(), DType::kF32, {1, 32}});
    EXPECT_EQ(sample_token({logits.data(), 30}, {}, 0, 29), id);
    sequence.push_back(id);
  }
}

TEST(Generate, IsAFunctionOfTheSeed) {
  Fixture f;
  const std::vector<std::int32_t> prompt = {1, 2, 3};
  const auto with = [&](std::uint64_t seed) {
    return generate(f.model, prompt,
                    {.temperature = 1.5, .seed = seed, .max_tokens = 12, .stop_at_eos = false}, {});
  };
  EXPECT_EQ(with(1), with(1));
  EXPECT_NE(with(1), with(2));
  EXPECT_THROW(generate(f.model, {}, {}, {}), Error);
}

}  // namespace
}  // namespace lockstep
