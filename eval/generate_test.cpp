#include "eval/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/rng.h"
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

// What a sort of all candidates says, for any order of the logits and any draw.
TEST(SampleToken, TakesCandidatesFromTheMostLikelyOnAndEqualOnesByTheirIds) {
  std::vector<float> logits(257);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(i * i % 64) / 16;
  }
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  const auto weight = [&](std::int32_t id) {
    return std::exp(double{logits[static_cast<std::size_t>(id)]} / 0.7);
  };
  for (const double top_p : {1.0, 0.6}) {
    double total = 0;
    for (const std::int32_t id : order) total += weight(id);
    double held = 0;
    std::size_t kept = 0;
    while (kept < order.size() && held < top_p * total) held += weight(order[kept++]);
    for (std::int64_t i = 0; i < 300; ++i) {
      double left = CounterRng(3, "generate").uniform(static_cast<std::uint64_t>(i)) * held;
      std::size_t at = 0;
      while (at + 1 < kept && (left -= weight(order[at])) >= 0) ++at;
      EXPECT_EQ(sample_token(logits, {.temperature = 0.7, .top_p = top_p, .seed = 3}, i, -1),
                order[at])
          << top_p << " " << i;
    }
  }
}

TEST(SampleToken, RefusesNaNWhereverItIsAndWhetherItSamples) {
  for (const double temperature : {0.0, 1.0}) {
    const SamplingConfig config{.temperature = temperature};
    EXPECT_THROW(static_cast<void>(sample_token(std::vector{0.0F, NAN}, config, 0, -1)), Error);
    EXPECT_THROW(static_cast<void>(sample_token(std::vector{NAN, 0.0F}, config, 0, -1)), Error);
    EXPECT_THROW(static_cast<void>(sample_token(std::vector{0.0F, NAN}, config, 0, 1)), Error);
  }
}

TEST(SampleToken, InfiniteLogitsAreOrderedLikeOthers) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const double temperature : {0.0, 1.0}) {
    const SamplingConfig config{.temperature = temperature};
    EXPECT_EQ(sample_token(std::vector{-kInf, 0.0F, -kInf}, config, 0, -1), 1);
    EXPECT_EQ(sample_token(std::vector{0.0F, kInf}, config, 0, -1), 1);
  }
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
