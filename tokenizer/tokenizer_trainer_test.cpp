#include "tokenizer/tokenizer_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/thread_pool.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

DocumentSource from(const std::vector<std::string>& documents) {
  return [&documents, next = std::size_t{0}](std::string& text) mutable {
    if (next == documents.size()) return false;
    text = documents[next++];
    return true;
  };
}

std::string train(const std::vector<std::string>& documents, TokenizerTraining training,
                  int threads = 1) {
  ThreadPool pool(threads);
  return train_tokenizer(from(documents), training, pool);
}

std::vector<std::string> merges_of(const std::string& json) {
  return parse_json(json, "trained").at("model").at("merges").get<std::vector<std::string>>();
}

std::vector<std::string> random_documents() {
  const CounterRng random(11, "documents");
  std::vector<std::string> documents(200);
  std::uint64_t at = 0;
  for (std::string& document : documents) {
    for (int word = 0; word < 50; ++word) {
      for (std::uint64_t letters = 1 + random.u64(at++) % 6; letters > 0; --letters) {
        document += static_cast<char>('a' + random.u64(at++) % 5);
      }
      document += random.u64(at++) % 9 == 0 ? "\n" : " ";
    }
  }
  return documents;
}

TEST(TokenizerTrainer, MergesTheMostFrequentPairFirst) {
  // "hug" 10, "pug" 5, "pun" 12, "bun" 4, "hugs" 5: ug 20, then un 16, then h+ug 15.
  std::vector<std::string> documents;
  const auto add = [&](const std::string& word, int count) {
    for (int i = 0; i < count; ++i) documents.push_back(word);
  };
  add("hug", 10);
  add("pug", 5);
  add("pun", 12);
  add("bun", 4);
  add("hugs", 5);
  TokenizerTraining training;
  training.special_tokens = {};
  training.vocab_size = 256 + 3;
  EXPECT_EQ(merges_of(train(documents, training)),
            (std::vector<std::string>{"u g", "u n", "h ug"}));
}

TEST(TokenizerTrainer, BreaksTiesByTheSmallerIds) {
  TokenizerTraining training;
  training.special_tokens = {};
  training.vocab_size = 256 + 4;
  EXPECT_EQ(merges_of(train({"zy", "zy", "zx", "zx", "ab", "ab", "ac", "ac"}, training)),
            (std::vector<std::string>{"a b", "a c", "z x", "z y"}));
}

TEST(TokenizerTrainer, CountsOverlappingPairsAsTheyStand) {
  TokenizerTraining training;
  training.special_tokens = {};
  training.vocab_size = 256 + 10;
  training.min_frequency = 1;
  EXPECT_EQ(merges_of(train({"aaaaaaa"}, training)),
            (std::vector<std::string>{"a a", "aa aa", "aa a", "aaaa aaa"}));
}

TEST(TokenizerTrainer, DoesNotDependOnThreadsOrOnTheOrderOfDocuments) {
  std::vector<std::string> documents = random_documents();
  TokenizerTraining training;
  training.vocab_size = 500;
  const std::string expected = train(documents, training);
  EXPECT_EQ(train(documents, training, 2), expected);
  EXPECT_EQ(train(documents, training, 5), expected);
  std::reverse(documents.begin(), documents.end());
  EXPECT_EQ(train(documents, training, 3), expected);
}

TEST(TokenizerTrainer, WritesAFileThatLoadsAndComesBackToTheText) {
  const std::vector<std::string> documents = random_documents();
  TokenizerTraining training;
  training.vocab_size = 400;
  const Tokenizer tokenizer = Tokenizer::from_json(train(documents, training), "trained");
  EXPECT_EQ(tokenizer.vocab_size(), 400U);
  EXPECT_EQ(tokenizer.eos_id(), 0U);
  EXPECT_EQ(tokenizer.pad_id(), 1U);
  for (const std::string& document : documents) {
    const auto ids = tokenizer.encode(document, Special::kText);
    EXPECT_LT(ids.size(), document.size() * 2 / 3);
    ASSERT_EQ(tokenizer.decode_bytes(ids), document);
  }
  const std::string other = "na\u00efve \U0001f44d\n<|endoftext|>";
  EXPECT_EQ(tokenizer.decode_bytes(tokenizer.encode(other, Special::kText)), other);
  EXPECT_EQ(tokenizer.encode("<|endoftext|>", Special::kParse), std::vector<std::uint32_t>{0});
}

TEST(TokenizerTrainer, StopsAtTheMinimumFrequency) {
  TokenizerTraining training;
  training.special_tokens = {};
  training.min_frequency = 3;
  EXPECT_EQ(merges_of(train({"ab", "ab", "ab", "cd", "cd"}, training)),
            (std::vector<std::string>{"a b"}));
}

TEST(TokenizerTrainer, NeverLearnsTheTextOfASpecialToken) {
  TokenizerTraining training;
  training.special_tokens = {"abc"};
  training.min_frequency = 1;
  training.vocab_size = 300;
  const std::vector<std::string> documents(9, "abc");
  const Tokenizer tokenizer = Tokenizer::from_json(train(documents, training), "trained");
  EXPECT_EQ(tokenizer.encode("abc", Special::kText).size(), 2U);
}

TEST(TokenizerTrainer, RefusesBadSettingsAndBadText) {
  const auto kind_of = [](const std::vector<std::string>& documents,
                          const TokenizerTraining& training) {
    try {
      static_cast<void>(train(documents, training));
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kBug;
  };
  EXPECT_EQ(kind_of({"a"}, {.vocab_size = 257}), ErrorKind::kConfig);
  EXPECT_EQ(kind_of({"a"}, {.special_tokens = {"x", "x"}}), ErrorKind::kConfig);
  EXPECT_EQ(kind_of({"a"}, {.special_tokens = {""}}), ErrorKind::kConfig);
  EXPECT_EQ(kind_of({"a"}, {.special_tokens = {"a"}}), ErrorKind::kConfig);
  EXPECT_EQ(kind_of({"a"}, {.pattern = "(a"}), ErrorKind::kInput);
  EXPECT_EQ(kind_of({"a", "b\xff"}, {}), ErrorKind::kInput);
}

TEST(TokenizerTrainer, TrainsOnNothing) {
  EXPECT_EQ(merges_of(train({}, {})).size(), 0U);
  EXPECT_EQ(Tokenizer::from_json(train({}, {}), "trained").vocab_size(), 258U);
}

}  // namespace
}  // namespace lockstep
