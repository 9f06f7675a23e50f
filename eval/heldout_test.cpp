#include "eval/heldout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "model/init.h"

namespace lockstep {
namespace {

// Documents of the given lengths, alternating between two labels.
class FakeDocuments final : public InstanceSource {
 public:
  explicit FakeDocuments(std::vector<std::size_t> lengths) : lengths_(std::move(lengths)) {}
  [[nodiscard]] std::uint64_t instances() const override { return lengths_.size(); }
  [[nodiscard]] std::uint64_t sequence_length() const override { return 40; }
  [[nodiscard]] std::size_t read(std::uint64_t id, std::span<std::uint32_t> tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<std::uint32_t>((id * 7 + i * 3) % 50);
    }
    return lengths_[id];
  }
  [[nodiscard]] const std::vector<std::string>& labels() const override { return labels_; }
  [[nodiscard]] std::size_t label_of(std::uint64_t id) const override { return id % 2; }
  [[nodiscard]] const std::string& fingerprint() const override { return labels_[0]; }

 private:
  std::vector<std::size_t> lengths_;
  std::vector<std::string> labels_ = {"even", "odd"};
};

ModelConfig tiny() {
  ModelConfig config;
  config.preset = Preset::kCustom;
  config.n_layers = 4;
  config.d_model = 32;
  config.n_heads = config.n_kv_heads = 2;
  config.head_dim = 16;
  config.d_ff = 48;
  config.vocab_size = 50;
  config.context_length = 64;
  config.sliding_window = 8;
  config.eos_token_id = 0;
  config.pad_token_id = -1;
  return config;
}

class Heldout : public ::testing::TestWithParam<Precision> {
 protected:
  Heldout()
      : stream_(2),
        model_(tiny(), {.precision = GetParam(), .use = Weights::Use::kForward}, stream_) {
    initialise(model_.table(), {.seed = 3, .std = 0.3}, model_.weights(), stream_.pool());
    model_.refresh();
  }
  HeldoutReport evaluate(std::int64_t batch, std::int64_t max_documents = 0) {
    return evaluate_heldout(model_, documents_,
                            {.batch = batch,
                             .max_documents = max_documents,
                             .bytes_of_token = bytes_,
                             .progress = {},
                             .stopping = {}});
  }
  CpuStream stream_;
  Model model_;
  FakeDocuments documents_{{40, 1, 2, 39, 17, 40, 5, 8, 8, 33}};
  std::vector<std::int32_t> bytes_ = std::vector<std::int32_t>(50, 3);
};

TEST_P(Heldout, NoBitDependsOnTheBatch) {
  const HeldoutReport one = evaluate(1);
  for (const std::int64_t batch : {2, 3, 8}) {
    const HeldoutReport other = evaluate(batch);
    ASSERT_EQ(other.documents.size(), one.documents.size());
    for (std::size_t i = 0; i < one.documents.size(); ++i) {
      EXPECT_EQ(other.documents[i].ce, one.documents[i].ce) << "batch " << batch << ", " << i;
    }
    EXPECT_EQ(other.total().ce, one.total().ce);
  }
}

TEST_P(Heldout, MeansCountWhatTheyClaim) {
  const HeldoutReport report = evaluate(4);
  const DomainLoss& even = report.domains[0];
  EXPECT_EQ(even.label, "even");
  EXPECT_EQ(even.documents, 5);
  EXPECT_EQ(even.tokens, 40 + 2 + 17 + 5 + 8);
  EXPECT_EQ(even.targets, even.tokens - 5);
  EXPECT_EQ(even.bytes, 3 * even.targets);
  EXPECT_DOUBLE_EQ(even.olmo_core() * static_cast<double>(even.tokens),
                   even.strict() * static_cast<double>(even.targets));
  EXPECT_DOUBLE_EQ(even.perplexity(), std::exp(even.strict()));
  EXPECT_DOUBLE_EQ(even.bits_per_byte() * 3, even.strict() / std::log(2.0));
  EXPECT_EQ(report.total().targets, even.targets + report.domains[1].targets);
  EXPECT_EQ(report.documents[1].targets, 0);  // one token: nothing to predict
  EXPECT_EQ(report.documents[1].ce, 0);
}

TEST_P(Heldout, ADocumentsLossIsThatOfTheModelAlone) {
  const HeldoutReport report = evaluate(8);
  std::vector<std::uint32_t> tokens(40);
  const std::size_t length = documents_.read(4, tokens);
  std::vector<std::int32_t> ids(tokens.begin(),
                                tokens.begin() + static_cast<std::ptrdiff_t>(length));
  std::vector<std::int32_t> targets(ids.begin() + 1, ids.end());
  targets.push_back(-1);
  const auto t = static_cast<std::int64_t>(length);
  const LossSums sums = model_.forward_loss({.tokens = View(ids.data(), DType::kI32, {1, t}),
                                             .targets = View(targets.data(), DType::kI32, {1, t}),
                                             .segments = {}},
                                            50);
  EXPECT_EQ(sums.ce, report.documents[4].ce);
}

TEST_P(Heldout, LimitsAreByLabelAndStoppingEndsEarly) {
  const HeldoutReport limited = evaluate(2, 2);
  EXPECT_EQ(limited.documents.size(), 4U);
  EXPECT_EQ(limited.domains[0].documents, 2);
  const HeldoutReport stopped = evaluate_heldout(
      model_, documents_,
      {.batch = 1, .max_documents = 0, .bytes_of_token = {}, .progress = {}, .stopping = [] {
         return true;
       }});
  EXPECT_TRUE(stopped.documents.empty());
  EXPECT_TRUE(std::isnan(stopped.total().strict()));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Heldout,
                         ::testing::Values(Precision::kFp32, Precision::kBf16));

}  // namespace
}  // namespace lockstep
