#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "tokenizer/small_tokenizer.h"

namespace lockstep {
namespace {

// The whole error text, or "" when the file loads.
std::string refusal(const std::string& json) {
  try {
    static_cast<void>(Tokenizer::from_json(json, "bad.json"));
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput) << error.what();
    return error.what();
  }
}

void expect_refused(const std::function<void(Json&)>& spoil, const std::string& field,
                    const std::string& reason) {
  SmallTokenizer small;
  small.Merge("a", "b").Add("<x>", {"special"});
  ASSERT_EQ(refusal(small.json.dump()), "");
  spoil(small.json);
  const std::string text = refusal(small.json.dump());
  EXPECT_TRUE(text.starts_with("bad.json: " + field)) << text;
  EXPECT_NE(text.find(reason), std::string::npos) << text;
}

TEST(MalformedTokenizer, NamesTheFieldAndTheReason) {
  expect_refused([](Json& j) { j["model"]["type"] = "WordPiece"; }, "model", "WordPiece");
  expect_refused([](Json& j) { j["model"].erase("merges"); }, "model", "no 'merges'");
  expect_refused([](Json& j) { j["model"]["vocab"] = Json::array(); }, "model.vocab", "object");
  expect_refused([](Json& j) { j["model"]["vocab"] = Json::object(); }, "model.vocab", "empty");
  expect_refused([](Json& j) { j["model"]["vocab"]["q"] = -1; }, "model.vocab['q']", "-1");
  expect_refused([](Json& j) { j["model"]["vocab"]["q"] = 1.5; }, "model.vocab['q']", "1.5");
  expect_refused([](Json& j) { j["model"]["vocab"]["q"] = 4000000000U; }, "model.vocab['q']",
                 "4000000000");
  expect_refused([](Json& j) { j["model"]["vocab"]["q"] = 2000000000; }, "model.vocab['q']",
                 "2000000000");
  expect_refused([](Json& j) { j["model"]["vocab"]["q"] = 7; }, "model.vocab",
                 "two tokens have id 7");
  expect_refused([](Json& j) { j["model"]["vocab"][""] = 300; }, "model.vocab['']", "empty token");
  expect_refused([](Json& j) { j["model"]["merges"][0] = "a"; }, "model.merges[0]", "one space");
  expect_refused([](Json& j) { j["model"]["merges"][0] = "a b c"; }, "model.merges[0]",
                 "one space");
  expect_refused(
      [](Json& j) {
        j["model"]["merges"][0] = {"a", "b", "c"};
      },
      "model.merges[0]", "two tokens");
  expect_refused([](Json& j) { j["model"]["merges"][0] = 3; }, "model.merges[0]",
                 "wanted a string");
  expect_refused([](Json& j) { j["model"]["merges"].push_back("ab zz"); }, "model.merges[1]",
                 "'zz' is not");
  expect_refused([](Json& j) { j["model"]["merges"].push_back("a c"); }, "model.merges[1]",
                 "'ac' is not");
  expect_refused([](Json& j) { j["model"]["dropout"] = 0.1; }, "model.dropout", "random");
  expect_refused([](Json& j) { j["model"]["continuing_subword_prefix"] = "##"; },
                 "model.continuing_subword_prefix", "##");
  expect_refused([](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; },
                 "model.end_of_word_suffix", "</w>");
  expect_refused([](Json& j) { j["model"]["cache_capacity"] = 1; }, "model",
                 "unknown field 'cache_capacity'");
  expect_refused(
      [](Json& j) {
        j["model"]["vocab"].erase("q");
        j["model"]["byte_fallback"] = true;
      },
      "model.byte_fallback", "not supported");
  expect_refused(
      [](Json& j) {
        j["model"]["vocab"].erase("q");
        j["model"]["unk_token"] = "<unk>";
      },
      "model.unk_token", "<unk>");
}

TEST(MalformedTokenizer, NamesUnknownComponents) {
  expect_refused(
      [](Json& j) {
        j["normalizer"] = {{"type", "Lowercase"}};
      },
      "normalizer", "Lowercase");
  expect_refused(
      [](Json& j) {
        j["normalizer"] =
            Json::parse(R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Strip"}]})");
      },
      "normalizer.normalizers[1]", "Strip");
  expect_refused(
      [](Json& j) {
        j["pre_tokenizer"] = {{"type", "Metaspace"}};
      },
      "pre_tokenizer", "Metaspace");
  expect_refused([](Json& j) { j["pre_tokenizer"] = nullptr; }, "", "no 'pre_tokenizer'");
  expect_refused([](Json& j) { j["pre_tokenizer"]["new_option"] = 1; }, "pre_tokenizer",
                 "new_option");
  expect_refused([](Json& j) { j["pre_tokenizer"]["type"] = 3; }, "pre_tokenizer.type",
                 "wanted a string");
  expect_refused([](Json& j) { j["pre_tokenizer"] = Json::parse(R"({"type":"WhitespaceSplit"})"); },
                 "pre_tokenizer", "no ByteLevel");
  expect_refused(
      [](Json& j) {
        j["pre_tokenizer"] = Json::parse(
            R"({"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated","invert":false})");
      },
      "pre_tokenizer.pattern.Regex", "not closed");
  expect_refused(
      [](Json& j) {
        j["pre_tokenizer"] =
            Json::parse(R"({"type":"Split","pattern":{"Regex":"a"},"behavior":"Sometimes"})");
      },
      "pre_tokenizer.behavior", "Sometimes");
  expect_refused(
      [](Json& j) {
        j["post_processor"] = {{"type", "BertProcessing"}};
      },
      "post_processor", "BertProcessing");
  expect_refused([](Json& j) { j["decoder"] = {{"type", "WordPiece"}}; }, "decoder", "WordPiece");
  expect_refused([](Json& j) { j["truncation"] = {{"max_length", 512}}; }, "truncation", "null");
  expect_refused([](Json& j) { j["padding"] = Json::object(); }, "padding", "null");
  expect_refused([](Json& j) { j["version"] = "2.0"; }, "version", "2.0");
  expect_refused([](Json& j) { j["extra"] = 1; }, "", "unknown field 'extra'");
}

TEST(MalformedTokenizer, ChecksAddedTokens) {
  expect_refused([](Json& j) { j["added_tokens"][0]["id"] = 999; }, "added_tokens[0].id", "999");
  expect_refused([](Json& j) { j["added_tokens"][0]["content"] = ""; }, "added_tokens[0].content",
                 "empty");
  expect_refused([](Json& j) { j["added_tokens"][0]["content"] = "ab"; }, "added_tokens[0].id",
                 "wanted 256");
  expect_refused([](Json& j) { j["added_tokens"][0].erase("normalized"); }, "added_tokens[0]",
                 "normalized");
  expect_refused([](Json& j) { j["added_tokens"].push_back(j["added_tokens"][0]); },
                 "added_tokens[1]", "twice");
  expect_refused([](Json& j) { j["added_tokens"] = "x"; }, "added_tokens", "array");
}

TEST(MalformedTokenizer, RefusesToExpandAFloodOfValues) {
  std::string flood = "[[]";
  while (flood.size() < 30'000'000) flood += ",[],[],[],[],[],[],[],[]";
  EXPECT_NE(refusal(flood + "]").find("JSON values"), std::string::npos);
  EXPECT_NE(refusal(std::string(1'000'000, '[')), "");
}

TEST(MalformedTokenizer, SurvivesEveryCutAndEverySpoiledByte) {
  SmallTokenizer small;
  small.Merge("a", "b").Add("<x>", {"special"});
  const std::string whole = small.json.dump();
  for (std::size_t size = 0; size < whole.size(); size += 7)
    EXPECT_NE(refusal(whole.substr(0, size)), "");
  for (std::size_t at = 0; at < whole.size(); at += 11) {
    std::string spoiled = whole;
    spoiled[at] = static_cast<char>(spoiled[at] ^ 0x81);
    EXPECT_NE(refusal(spoiled), "");
  }
}

TEST(MalformedTokenizer, SurvivesEveryValueOfAnotherType) {
  SmallTokenizer small;
  small.Merge("a", "b").Add("<x>", {"special"}).PreTokenize(R"([
      {"type": "Split", "pattern": {"Regex": "b"}, "behavior": "Isolated", "invert": false},
      {"type": "Digits", "individual_digits": true}, {"type": "Punctuation", "behavior": "Removed"},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}])");
  small.json["normalizer"] =
      Json::parse(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}]})");
  small.json["post_processor"] = Json::parse(R"({"type": "TemplateProcessing", "pair": [],
    "single": [{"SpecialToken": {"id": "<x>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<x>": {"id": "<x>", "ids": [257], "tokens": ["<x>"]}}})");
  ASSERT_EQ(refusal(small.json.dump()), "");
  const Json flat = small.json.flatten();
  std::size_t places = 0;
  for (const auto& [pointer, value] : flat.items()) {
    if (pointer.starts_with("/model/vocab/") && ++places % 50 != 0) continue;
    // The value itself and everything around it.
    for (Json::json_pointer place(pointer); !place.empty(); place.pop_back()) {
      for (const char* other :
           {"null", "true", "3", "-1", "1e300", "\"x\"", "[]", "{}", "[{}]", "[null]"}) {
        Json spoiled = small.json;
        spoiled[place] = Json::parse(other);
        static_cast<void>(refusal(spoiled.dump()));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
