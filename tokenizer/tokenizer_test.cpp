#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/error.h"
#include "io/file.h"
#include "tokenizer/small_tokenizer.h"

namespace lockstep {
namespace {

using Ids = std::vector<std::uint32_t>;

SmallTokenizer abc() {
  SmallTokenizer small;
  small.Merge("a", "b").Merge(" ", "ab").Merge("ab", "c");  // 256, 257, 258
  return small;
}

TEST(Tokenizer, MergesInTheOrderOfRanks) {
  const Tokenizer tokenizer = abc().Load();
  EXPECT_EQ(tokenizer.encode("abc abc", Special::kParse), (Ids{258, 257, 'c'}));
  EXPECT_EQ(tokenizer.encode("", Special::kParse), Ids{});
  EXPECT_EQ(tokenizer.vocab_size(), 259U);
}

TEST(Tokenizer, TakesMergesAsStringsAndAsPairs) {
  const SmallTokenizer strings = abc();
  SmallTokenizer pairs = abc();
  for (Json& merge : pairs.json["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    merge = Json::array({text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1)});
  }
  EXPECT_EQ(strings.Load().encode("abc abc ab", Special::kParse),
            pairs.Load().encode("abc abc ab", Special::kParse));
  EXPECT_EQ(strings.Load().fingerprint(), pairs.Load().fingerprint());
}

TEST(Tokenizer, RunsThePreTokenizerOfTheFile) {
  SmallTokenizer small = abc();
  small.PreTokenize(R"([{"type": "Split", "pattern": {"Regex": "b"}, "behavior": "Isolated",
                         "invert": false},
                        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                         "use_regex": false}])");
  EXPECT_EQ(small.Load().encode("abc", Special::kParse), (Ids{'a', 'b', 'c'}));
}

TEST(Tokenizer, IgnoresMergesForWholePiecesWhenToldTo) {
  SmallTokenizer small = abc();
  small.json["model"]["vocab"]["zzz"] = 259;  // no merge makes it
  EXPECT_EQ(small.Load().encode("zzz zzz", Special::kParse).size(), 7U);
  small.json["model"]["ignore_merges"] = true;
  EXPECT_EQ(small.Load().encode("zzz zzz", Special::kParse), (Ids{259, ' ', 'z', 'z', 'z'}));
}

TEST(Tokenizer, ParsesAddedTokensOnlyWhenAsked) {
  SmallTokenizer small = abc();
  small.Add("<|end|>", {"special"}).Add("<b>", {"lstrip"});
  const Tokenizer tokenizer = small.Load();
  EXPECT_EQ(tokenizer.encode("a<|end|>ab <b>", Special::kParse), (Ids{'a', 259, 256, 260}));
  EXPECT_EQ(tokenizer.encode("<|end|>", Special::kText), (Ids{'<', '|', 'e', 'n', 'd', '|', '>'}));
  EXPECT_EQ(tokenizer.decode(Ids{'a', 259, 260}), "a<|end|><b>");
  EXPECT_EQ(tokenizer.decode(Ids{'a', 259, 260}, SkipSpecial::kYes), "a<b>");
  EXPECT_TRUE(tokenizer.is_special(259));
  EXPECT_FALSE(tokenizer.is_special(260));
  EXPECT_EQ(tokenizer.find("<b>"), 260U);
  EXPECT_EQ(tokenizer.find(" ab"), 257U);
  EXPECT_EQ(tokenizer.find("nothing"), std::nullopt);
}

TEST(Tokenizer, OrdinaryTextNeverBecomesAnAddedToken) {
  SmallTokenizer small;
  small.json["model"]["vocab"]["<x>"] = 256;
  small.json["model"]["ignore_merges"] = true;
  small.json["pre_tokenizer"]["use_regex"] = false;
  small.json["added_tokens"] = Json::parse(
      R"([{"id": 256, "content": "<x>", "single_word": false, "lstrip": false, "rstrip": false,
           "normalized": false, "special": true}])");
  EXPECT_EQ(small.Load().encode("<x>", Special::kParse), (Ids{256}));
  EXPECT_EQ(small.Load().encode("<x>", Special::kText), (Ids{'<', 'x', '>'}));
}

TEST(Tokenizer, NormalizesBetweenTheTwoKindsOfAddedTokens) {
  SmallTokenizer small;
  small.Add("e\u0301<raw>").Add("\u00e9<n>", {"normalized"});
  small.json["normalizer"] = {{"type", "NFC"}};
  const Tokenizer tokenizer = small.Load();
  EXPECT_EQ(tokenizer.encode("e\u0301<raw>", Special::kParse), (Ids{256}));
  EXPECT_EQ(tokenizer.encode("e\u0301<n>", Special::kParse), (Ids{257}));
  EXPECT_EQ(tokenizer.encode("e\u0301", Special::kParse), (Ids{0xc3, 0xa9}));
}

TEST(Tokenizer, RefusesInvalidUtf8WithItsOffset) {
  const Tokenizer tokenizer = abc().Load();
  try {
    static_cast<void>(
        tokenizer.encode("a\xff"
                         "b",
                         Special::kParse));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(error.what()).find("byte 1 of 3"), std::string::npos) << error.what();
  }
}

TEST(Tokenizer, DecodesBytesBeforeItLooksForCharacters) {
  const Tokenizer tokenizer = abc().Load();
  EXPECT_EQ(tokenizer.decode(Ids{0xf0, 0x9f, 0x91, 0x8d}), "\U0001f44d");
  EXPECT_EQ(tokenizer.decode(Ids{'a', 0xff, 'b'}),
            "a\ufffd"
            "b");
  EXPECT_EQ(tokenizer.decode_bytes(Ids{'a', 0xff, 'b'}),
            "a\xff"
            "b");
  EXPECT_THROW(static_cast<void>(tokenizer.decode(Ids{'a', 259})), Error);
}

TEST(Tokenizer, EveryTokenDecodesToItsBytes) {
  const Tokenizer tokenizer = abc().Load();
  std::string all;
  for (std::uint32_t id = 0; id < tokenizer.vocab_size(); ++id)
    all += tokenizer.decode_bytes(Ids{id});
  EXPECT_EQ(all.size(), 256U + 2 + 3 + 3);
  EXPECT_EQ(all.substr(256), "ab ababc");
}

TEST(Tokenizer, ReportsWhatATemplateWouldPutAround) {
  SmallTokenizer small;
  small.Add("<s>", {"special"}).Add("</s>", {"special"});
  small.json["post_processor"] = Json::parse(R"({"type": "Sequence", "processors": [
    {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true},
    {"type": "TemplateProcessing",
     "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "</s>", "type_id": 0}}],
     "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]},
                                    "</s>": {"id": "</s>", "ids": [257], "tokens": ["</s>"]}}}]})");
  const Tokenizer tokenizer = small.Load();
  EXPECT_EQ(tokenizer.encode("a", Special::kParse), (Ids{'a'}));
  ASSERT_EQ(tokenizer.template_prefix().size(), 1U);
  EXPECT_EQ(tokenizer.template_prefix()[0], 256U);
  EXPECT_EQ(tokenizer.template_suffix()[0], 257U);
  EXPECT_EQ(tokenizer.eos_id(), 257U);
  EXPECT_EQ(tokenizer.pad_id(), std::nullopt);
}

TEST(Tokenizer, FingerprintTellsTokenizersApart) {
  const std::string fingerprint = abc().Load().fingerprint();
  EXPECT_EQ(fingerprint.size(), 32U);
  SmallTokenizer merges = abc();
  std::swap(merges.json["model"]["merges"][1], merges.json["model"]["merges"][2]);
  EXPECT_NE(merges.Load().fingerprint(), fingerprint);
  SmallTokenizer added = abc();
  EXPECT_NE(added.Add("<x>").Load().fingerprint(), fingerprint);
  SmallTokenizer nfc = abc();
  nfc.json["normalizer"] = {{"type", "NFC"}};
  EXPECT_NE(nfc.Load().fingerprint(), fingerprint);
}

TEST(Tokenizer, EncodesFromManyThreadsAtOnce) {
  const Tokenizer tokenizer = abc().Load();
  std::string text;
  for (int i = 0; i < 2000; ++i) text += " abc" + std::to_string(i * 7919);
  const Ids expected = tokenizer.encode(text, Special::kParse);
  std::vector<std::thread> threads;
  std::vector<Ids> results(4);
  for (Ids& result : results) {
    threads.emplace_back([&] { tokenizer.encode(text, Special::kParse, result); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, expected);
}

TEST(Tokenizer, EncodesAMillionRepeatsOfOneCharacter) {
  SmallTokenizer small;
  small.Merge("a", "a").Merge("aa", "aa").Merge("aaaa", "aaaa");
  EXPECT_EQ(small.Load().encode(std::string(1'000'000, 'a'), Special::kText), Ids(125'000, 258));
}

TEST(Tokenizer, LoadsFilesAndNamesThoseThatAreMissing) {
  const auto path = std::filesystem::path(testing::TempDir()) / "lockstep_small_tokenizer.json";
  write_file_atomic(FileSystem::real(), path.string(), abc().json.dump());
  EXPECT_EQ(Tokenizer::load(FileSystem::real(), path.string()).vocab_size(), 259U);
  std::filesystem::remove(path);
  EXPECT_THROW(static_cast<void>(Tokenizer::load(FileSystem::real(), path.string())), Error);
}

}  // namespace
}  // namespace lockstep
