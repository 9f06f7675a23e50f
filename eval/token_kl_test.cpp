#include "eval/token_kl.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "model/init.h"

namespace lockstep {
namespace {

class FakeDocuments final : public InstanceSource {
 public:
  [[nodiscard]] std::uint64_t instances() const override { return lengths_.size(); }
  [[nodiscard]] std::uint64_t sequence_length() const override { return 100; }
  [[nodiscard]] std::size_t read(std::uint64_t id, std::span<std::uint32_t> tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<std::uint32_t>((id * 7 + i * i) % 29);
    }
    return lengths_[id];
  }
  [[nodiscard]] const std::vector<std::string>& labels() const override { return labels_; }
  [[nodiscard]] std::size_t label_of(std::uint64_t id) const override { return id < 3 ? 0 : 1; }
  [[nodiscard]] const std::string& fingerprint() const override { return labels_[0]; }

 private:
  std::vector<std::size_t> lengths_ = {100, 3, 70, 1, 33};
  std::vector<std::string> labels_ = {"a", "b"};
};

ModelConfig toy(std::int64_t vocab, std::int64_t rows) {
  ModelConfig config;
  config.preset = Preset::kCustom;
  config.n_layers = 1;
  config.d_model = 16;
  config.n_heads = 2;
  config.n_kv_heads = 2;
  config.head_dim = 8;
  config.d_ff = 24;
  config.vocab_size = vocab;
  config.padded_vocab_size = rows;
  config.eos_token_id = 28;
  config.pad_token_id = 29;
  return config;
}

std::unique_ptr<Model> model_of(const ModelConfig& config, std::uint64_t seed, CpuStream& stream) {
  auto model = std::make_unique<Model>(config, ModelOptions{.precision = Precision::kFp32}, stream);
  initialise(model->table(), {.seed = seed, .std = 0.3}, model->weights(), stream.pool());
  model->refresh();
  return model;
}

TEST(LogitDistance, CountsWhatTheFiveLargestHaveInCommon) {
  const std::vector<float> a = {9, 8, 7, 6, 5, 4, 3};
  const std::vector<float> b = {8, 9, 1, 6, 5, 7, 2};  // 1 0 5 3 4
  const LogitDistance distance = logit_distance(a, b);
  EXPECT_FALSE(distance.same_top);
  EXPECT_DOUBLE_EQ(distance.top5, 0.8);
  EXPECT_EQ(distance.max_abs, 6);
  EXPECT_EQ(logit_distance(a, a).top5, 1);
  EXPECT_EQ(logit_distance(a, a).kl, 0);
  const std::vector<float> few = {1, 2};
  EXPECT_EQ(logit_distance(few, few).top5, 1);
  // Equal logits: the lower ids are the largest.
  const std::vector<float> flat = {1, 1, 1, 1, 1, 1, 1};
  const std::vector<float> last = {0, 0, 1, 1, 1, 1, 1};
  EXPECT_DOUBLE_EQ(logit_distance(flat, last).top5, 0.6);
}

TEST(LogitDistance, ANaNIsNeverSmall) {
  const std::vector<float> a = {1, 2, 3};
  const std::vector<float> b = {1, std::nanf(""), 3};
  EXPECT_TRUE(std::isnan(logit_distance(a, b).kl));
  EXPECT_TRUE(std::isnan(logit_distance(b, a).kl));
}

TEST(KlTally, SumsByDocumentAndByPowersOfTwo) {
  KlTally tally;
  for (int i = 0; i < 6; ++i) tally.add(4, i, {.kl = i * 1.0, .same_top = i != 2, .top5 = 0.5});
  tally.add(9, 0, {.kl = 10, .same_top = true, .top5 = 1});
  const KlSurface kl = tally.finish();
  EXPECT_EQ(kl.tokens, 7);
  EXPECT_DOUBLE_EQ(kl.mean, 25.0 / 7);
  EXPECT_EQ(kl.max, 10);
  EXPECT_EQ(kl.p50, 3);                   // of 0 1 2 3 4 5 10
  EXPECT_DOUBLE_EQ(kl.p90, 5 + 0.4 * 5);  // at 5.4
  EXPECT_DOUBLE_EQ(kl.top1, 6.0 / 7);
  EXPECT_DOUBLE_EQ(kl.top5, 4.0 / 7);
  ASSERT_EQ(kl.by_document.size(), 2U);
  EXPECT_EQ(kl.by_document[0].document, 4);
  EXPECT_EQ(kl.by_document[0].kl, 15);
  EXPECT_EQ(kl.by_document[1].tokens, 1);
  ASSERT_EQ(kl.buckets.size(), 4U);
  EXPECT_EQ(kl.buckets[0].mean, 5);  // positions 0: 0 and 10
  EXPECT_EQ(kl.buckets[2].first, 2);
  EXPECT_EQ(kl.buckets[2].last, 3);
  EXPECT_EQ(kl.buckets[2].mean, 2.5);
  EXPECT_EQ(kl.buckets[3].first, 4);
  EXPECT_EQ(kl.buckets[3].last, 7);
  EXPECT_EQ(kl.buckets[3].tokens, 2);
}

TEST(TokenKl, OfAModelAndItselfIsNothing) {
  CpuStream stream(2);
  const auto padded = model_of(toy(30, 32), 2, stream);
  const auto unpadded = model_of(toy(30, 30), 2, stream);
  const KlSurface kl = measure_token_kl(*padded, *unpadded, FakeDocuments(), stream, {});
  EXPECT_EQ(kl.tokens, 100 + 3 + 70 + 1 + 33);
  EXPECT_EQ(kl.vocab, 30);
  EXPECT_EQ(kl.max, 0);
  EXPECT_EQ(kl.top1, 1);
  EXPECT_EQ(kl.top5, 1);
  EXPECT_EQ(kl.by_document.size(), 5U);
  EXPECT_EQ(kl.buckets.back().first, 64);
}

TEST(TokenKl, StoredLogitsGiveTheSameAsTheirModel) {
  CpuStream stream(2);
  const auto ours = model_of(toy(30, 32), 2, stream);
  const auto theirs = model_of(toy(30, 30), 3, stream);
  const FakeDocuments documents;
  const KlSurface want = measure_token_kl(*ours, *theirs, documents, stream, {});
  EXPECT_GT(want.mean, 1e-3);
  std::vector<std::uint32_t> tokens(100);
  static_cast<void>(documents.read(0, tokens));
  const Reference stored = reference_from_model(*theirs, {tokens.begin(), tokens.end()}, 1);
  const KlSurface got = measure_token_kl(*ours, stored, stream);
  EXPECT_EQ(got.tokens, 100);
  EXPECT_EQ(got.by_document[0].kl, want.by_document[0].kl);
}

TEST(TokenKl, NoBitDependsOnThreads) {
  CpuStream one(1);
  CpuStream three(3);
  const auto measure = [](CpuStream& stream) {
    const auto ours = model_of(toy(30, 32), 2, stream);
    const auto theirs = model_of(toy(30, 30), 3, stream);
    return measure_token_kl(*ours, *theirs, FakeDocuments(), stream, {});
  };
  const KlSurface a = measure(one);
  const KlSurface b = measure(three);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.p99_9, b.p99_9);
  for (std::size_t i = 0; i < a.by_document.size(); ++i) {
    EXPECT_EQ(a.by_document[i].kl, b.by_document[i].kl);
  }
}

TEST(TokenKl, ALimitTakesADocumentOfEachLabelInTurn) {
  CpuStream stream(1);
  const auto model = model_of(toy(30, 32), 2, stream);
  const KlSurface kl = measure_token_kl(*model, *model_of(toy(30, 32), 2, stream), FakeDocuments(),
                                        stream, {.max_tokens = 102});
  ASSERT_EQ(kl.by_document.size(), 3U);  // 0 of a, 3 of b, 1 of a
  EXPECT_EQ(kl.by_document[1].document, 1);
  EXPECT_EQ(kl.by_document[2].document, 3);
  EXPECT_EQ(kl.tokens, 104);
}

TEST(TokenKl, RefusesAnotherVocabulary) {
  CpuStream stream(1);
  const auto ours = model_of(toy(30, 32), 2, stream);
  const auto theirs = model_of(toy(31, 32), 2, stream);
  EXPECT_THROW(static_cast<void>(measure_token_kl(*ours, *theirs, FakeDocuments(), stream, {})),
               Error);
  Reference stored = reference_from_model(*ours, {1, 2, 3}, 1);
  stored.vocab = 29;
  EXPECT_THROW(static_cast<void>(measure_token_kl(*ours, stored, stream)), Error);
}

}  // namespace
}  // namespace lockstep
