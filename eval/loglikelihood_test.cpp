#include "eval/loglikelihood.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "eval/task_eval.h"
#include "model/init.h"
#include "tensor/buffer.h"
#include "tokenizer/small_tokenizer.h"

namespace lockstep {
namespace {

ModelConfig toy() {
  ModelConfig config;
  config.preset = Preset::kCustom;
  config.n_layers = 4;
  config.d_model = 16;
  config.n_heads = 2;
  config.n_kv_heads = 1;
  config.head_dim = 8;
  config.d_ff = 24;
  config.vocab_size = 61;
  config.padded_vocab_size = 64;
  config.eos_token_id = 59;
  config.pad_token_id = 60;
  config.sliding_window = 5;
  config.context_length = 64;
  return config;
}

class LogLikelihood : public testing::TestWithParam<Precision> {
 protected:
  LogLikelihood() : model_(toy(), {.precision = GetParam()}, stream_) {
    initialise(model_.table(), {.seed = 3, .std = 0.4}, model_.weights(), stream_.pool());
    model_.refresh();
  }

  static EncodedPair Pair(int context, int continuation, int salt) {
    EncodedPair pair;
    for (int i = 0; i < context; ++i) pair.context.push_back((i * i + 7 * (salt / 10)) % 59);
    for (int i = 0; i < continuation; ++i) pair.continuation.push_back((i * 5 + salt) % 59);
    return pair;
  }

  // Contexts of many lengths, continuations of many lengths; some of one token, some alone.
  static std::vector<Question> Questions() {
    std::vector<Question> questions;
    for (int q = 0; q < 23; ++q) {
      Question question;
      for (int c = 0; c < 1 + q % 4; ++c) {
        question.push_back(
            score_request(Pair(1 + 3 * q, q % 5 == 0 ? 1 : 1 + (q + 3 * c) % 9, 10 * q + c),
                          toy().context_length, "test"));
      }
      questions.push_back(question);
    }
    questions.emplace_back();
    return questions;
  }

  // Straight from the logits of one sequence, in fp64.
  Score Reference(const ScoreRequest& request) {
    const auto size = static_cast<std::int64_t>(request.input.size());
    std::vector<std::int32_t> tokens = request.input;
    model_.forward(
        {.tokens = View(tokens.data(), DType::kI32, {1, size}), .targets = {}, .segments = {}});
    Buffer memory(size * 64 * 4, "logits");
    const View logits(memory.data(), DType::kF32, {size, 64});
    model_.logits(0, logits);
    Score score{0, true};
    for (std::size_t i = 0; i < request.targets.size(); ++i) {
      const float* row =
          logits.data<float>() + (request.input.size() - request.targets.size() + i) * 64;
      double sum = 0;
      for (int v = 0; v < 61; ++v) sum += std::exp(static_cast<double>(row[v]));
      score.logprob += static_cast<double>(row[request.targets[i]]) - std::log(sum);
      score.greedy = score.greedy && std::max_element(row, row + 61) - row == request.targets[i];
    }
    return score;
  }

  CpuStream stream_{2};
  Model model_;
};

INSTANTIATE_TEST_SUITE_P(Precisions, LogLikelihood,
                         testing::Values(Precision::kFp32, Precision::kBf16),
                         [](const auto& tested) {
                           return tested.param == Precision::kFp32 ? "Fp32" : "Bf16";
                         });

TEST_P(LogLikelihood, IsTheSumOverTheContinuation) {
  const auto questions = Questions();
  const auto scores = score_questions(model_, questions, {});
  for (std::size_t q = 0; q < questions.size(); ++q) {
    ASSERT_EQ(scores[q].size(), questions[q].size());
    for (std::size_t r = 0; r < questions[q].size(); ++r) {
      const Score want = Reference(questions[q][r]);
      // fp32 sums over 61 columns for up to 9 tokens of about 4 nats.
      EXPECT_NEAR(scores[q][r].logprob, want.logprob, 2e-5) << q << " " << r;
      EXPECT_EQ(scores[q][r].greedy, want.greedy);
    }
  }
}

TEST_P(LogLikelihood, NoBitDependsOnTheBatchOrOnReuse) {
  const auto questions = Questions();
  const auto want = score_questions(model_, questions, {.tokens = 1, .reuse = PrefixReuse::kNo});
  for (const std::int64_t tokens : {1, 100, 777, 100000}) {
    for (const PrefixReuse reuse : {PrefixReuse::kNo, PrefixReuse::kYes}) {
      const auto got = score_questions(model_, questions, {.tokens = tokens, .reuse = reuse});
      for (std::size_t q = 0; q < questions.size(); ++q) {
        for (std::size_t r = 0; r < questions[q].size(); ++r) {
          EXPECT_EQ(got[q][r].logprob, want[q][r].logprob) << tokens << " " << q << " " << r;
          EXPECT_EQ(got[q][r].greedy, want[q][r].greedy);
        }
      }
    }
  }
}

TEST_P(LogLikelihood, FindsWhatIsGreedy) {
  EncodedPair pair = Pair(12, 0, 30);
  for (int i = 0; i < 4; ++i) {
    ScoreRequest probe = score_request({pair.context, {0}}, 64, "test");
    for (std::int32_t id = 0; id < 61; ++id) {
      probe.targets = {id};
      if (!Reference(probe).greedy) continue;
      pair.continuation.push_back(id);
      pair.context.push_back(id);
      break;
    }
  }
  pair.context.resize(12);
  Question question = {score_request(pair, 64, "test")};
  EXPECT_TRUE(score_questions(model_, {&question, 1}, {})[0][0].greedy);
  question[0].targets[2] = (question[0].targets[2] + 1) % 61;
  EXPECT_FALSE(score_questions(model_, {&question, 1}, {})[0][0].greedy);
}

TEST(ScoreRequest, CutsOnTheLeftAndNeverTheContinuation) {
  const EncodedPair pair = {{1, 2, 3, 4}, {5, 6}};
  EXPECT_EQ(score_request(pair, 10, "w").input, (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(score_request(pair, 5, "w").input, (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(score_request(pair, 4, "w").input, (std::vector<std::int32_t>{2, 3, 4, 5}));
  EXPECT_EQ(score_request(pair, 2, "w").input, (std::vector<std::int32_t>{4, 5}));
  EXPECT_EQ(score_request(pair, 2, "w").targets, (std::vector<std::int32_t>{5, 6}));
  EXPECT_THROW(static_cast<void>(score_request(pair, 1, "w")), Error);
  EXPECT_THROW(static_cast<void>(score_request({{1}, {}}, 9, "w")), Error);
}

// Bytes are their own ids; 256 is "ab", 257 "bc".
Tokenizer small() {
  SmallTokenizer file;
  file.Merge("a", "b").Merge("b", "c");
  return Tokenizer::from_json(file.json.dump(), "small");
}

TEST(EncodePair, EncodesBothAsOneText) {
  const Tokenizer tokenizer = small();
  // "abc" is [256, 'c']: behind the one id of "a" comes 'c' alone.
  const EncodedPair pair = encode_pair(tokenizer, "a", "bc", 9);
  EXPECT_EQ(pair.context, std::vector<std::int32_t>{'a'});
  EXPECT_EQ(pair.continuation, std::vector<std::int32_t>{'c'});
  const EncodedPair apart = encode_apart(tokenizer, "a", "bc", 9);
  EXPECT_EQ(apart.continuation, std::vector<std::int32_t>{257});
}

TEST(EncodePair, WhiteSpaceAtTheEndGoesToTheContinuation) {
  const EncodedPair pair = encode_pair(small(), "x \n", "b", 9);
  EXPECT_EQ(pair.context, std::vector<std::int32_t>{'x'});
  EXPECT_EQ(pair.continuation, (std::vector<std::int32_t>{' ', '\n', 'b'}));
}

TEST(EncodePair, APrefixStandsForAnEmptyContext) {
  for (const char* context : {"", " "}) {
    const EncodedPair pair = encode_pair(small(), context, " b", 9);
    EXPECT_EQ(pair.context, std::vector<std::int32_t>{9});
  }
  EXPECT_EQ(encode_apart(small(), "", " b", 9).context, std::vector<std::int32_t>{9});
}

}  // namespace
}  // namespace lockstep
