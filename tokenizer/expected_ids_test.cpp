#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>
#include <tuple>

#include "base/json.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

const std::string kFolder = LOCKSTEP_SOURCE_DIR "/../shared/data/tokenizer/";

std::string read(const std::string& name) {
  std::ifstream in(kFolder + name, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class OlmoTokenizer : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string json = read("tokenizer.json");
    if (!json.empty()) tokenizer_ = new Tokenizer(Tokenizer::from_json(json, "tokenizer.json"));
  }
  static void TearDownTestSuite() {
    delete tokenizer_;
    tokenizer_ = nullptr;
  }
  void SetUp() override {
    if (tokenizer_ == nullptr) GTEST_SKIP() << kFolder << "tokenizer.json is not there";
  }
  static Tokenizer* tokenizer_;
};
Tokenizer* OlmoTokenizer::tokenizer_ = nullptr;

TEST_F(OlmoTokenizer, GivesTheIdsOfHuggingFace) {
  const Json expected = parse_json(read("expected.json"), "expected.json");
  ASSERT_GT(expected.at("cases").size(), 20U);
  for (const Json& item : expected.at("cases")) {
    const auto text = item.at("text").get<std::string>();
    const auto ids = tokenizer_->encode(text, Special::kParse);
    EXPECT_EQ(ids, item.at("ids").get<std::vector<std::uint32_t>>()) << text;
    EXPECT_EQ(tokenizer_->decode_bytes(ids), text);
  }
}

TEST_F(OlmoTokenizer, GivesTheIdsOfTheSampleDocument) {
  const Json expected = parse_json(read("expected.json"), "expected.json").at("sample");
  const std::string text = read("sample.md");
  const auto ids = tokenizer_->encode(text, Special::kParse);
  ASSERT_EQ(ids.size(), expected.at("tokens").get<std::size_t>());
  const auto first = expected.at("first").get<std::vector<std::uint32_t>>();
  const auto last = expected.at("last").get<std::vector<std::uint32_t>>();
  EXPECT_TRUE(std::equal(first.begin(), first.end(), ids.begin()));
  EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), ids.rbegin()));
  EXPECT_EQ(tokenizer_->decode_bytes(ids), text);
}

TEST_F(OlmoTokenizer, KnowsItsSizeAndItsNamedTokens) {
  EXPECT_EQ(tokenizer_->vocab_size(), 100278U);
  EXPECT_EQ(tokenizer_->eos_id(), 100257U);
  EXPECT_EQ(tokenizer_->pad_id(), 100277U);
}

TEST_F(OlmoTokenizer, TakesSpecialTextAsTextWhenAsked) {
  const std::vector<std::uint32_t> text = {64, 27, 91, 8862, 728, 428, 91, 29, 65};
  EXPECT_EQ(tokenizer_->encode("a<|endoftext|>b", Special::kText), text);
}

// Of processor time, since other programs may run at once.
double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text, std::size_t tokens) {
  const std::clock_t start = std::clock();
  EXPECT_EQ(tokenizer.encode(text, Special::kParse).size(), tokens);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Ten times the text: ten times the work, where a quadratic algorithm does a hundred times as much.
// As a ratio, so that neither sanitizers nor a slow machine matter.
TEST_F(OlmoTokenizer, EncodesLongRepeatsInNearlyLinearTime) {
  const auto of = [&](char c, std::size_t length, std::size_t tokens) {
    return seconds_to_encode(*tokenizer_, std::string(length, c), tokens);
  };
  for (const auto& [c, few, many] :
       {std::tuple{'a', 12'500, 125'000}, std::tuple{' ', 782, 7'813}}) {
    const double small = std::min({of(c, 100'000, few), of(c, 100'000, few), of(c, 100'000, few)});
    EXPECT_LT(of(c, 1'000'000, many), 40 * small) << c;
  }
}

}  // namespace
}  // namespace lockstep
