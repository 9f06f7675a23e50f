#include "tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include "tokenizer/added_tokens.h"

namespace lockstep {
namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(SplitBehavior behavior, bool invert) {
  // "aaXbYYc": the upper-case letters are the matches.
  const std::string text = "aaXbYYc";
  std::vector<Span> spans = {{0, 2, false}, {2, 3, true}, {3, 4, false},
                             {4, 5, true},  {5, 6, true}, {6, 7, false}};
  apply_split(behavior, invert, spans);
  Pieces pieces;
  for (const Span& span : spans) pieces.push_back(text.substr(span.begin, span.end - span.begin));
  return pieces;
}

TEST(Split, KnowsEveryBehavior) {
  EXPECT_EQ(pieces_of(SplitBehavior::kRemoved, false), (Pieces{"aa", "b", "c"}));
  EXPECT_EQ(pieces_of(SplitBehavior::kRemoved, true), (Pieces{"X", "Y", "Y"}));
  EXPECT_EQ(pieces_of(SplitBehavior::kIsolated, false), (Pieces{"aa", "X", "b", "Y", "Y", "c"}));
  EXPECT_EQ(pieces_of(SplitBehavior::kContiguous, false), (Pieces{"aa", "X", "b", "YY", "c"}));
  EXPECT_EQ(pieces_of(SplitBehavior::kMergedWithPrevious, false), (Pieces{"aaX", "bY", "Y", "c"}));
  EXPECT_EQ(pieces_of(SplitBehavior::kMergedWithNext, false), (Pieces{"aa", "Xb", "Y", "Yc"}));
}

TEST(Split, DropsEmptyMatches) {
  std::vector<Span> spans = {{0, 0, true}, {0, 2, false}, {2, 2, true}};
  apply_split(SplitBehavior::kIsolated, false, spans);
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].end, 2U);
}

Pieces run(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Pieces pieces;
  pre_tokenizer.for_each_piece(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

SplitStage stage(SplitStage::Delimiter delimiter, SplitBehavior behavior) {
  SplitStage made;
  made.delimiter = delimiter;
  made.behavior = behavior;
  return made;
}

TEST(PreTokenizer, PutsASpaceBeforeEachPieceThatLacksOne) {
  std::vector<SplitStage> before;
  before.push_back(stage(SplitStage::Delimiter::kNumber, SplitBehavior::kIsolated));
  ByteLevelStage byte_level;
  byte_level.add_prefix_space = true;
  const PreTokenizer pre_tokenizer(std::move(before), std::move(byte_level), {});
  EXPECT_EQ(run(pre_tokenizer, "a12 b"), (Pieces{" a", " 1", " 2", " b"}));
  EXPECT_EQ(run(pre_tokenizer, ""), Pieces{});
}

TEST(PreTokenizer, LaterStagesSeeTheByteLevelAlphabet) {
  // U+00F2 is the bytes C3 B2; B2 stands in the alphabet as superscript two, which is a number.
  std::vector<SplitStage> after;
  after.push_back(stage(SplitStage::Delimiter::kNumber, SplitBehavior::kIsolated));
  const PreTokenizer pre_tokenizer({}, ByteLevelStage{}, std::move(after));
  EXPECT_EQ(run(pre_tokenizer, "a\u00f2z"), (Pieces{"a\xc3", "\xb2", "z"}));
}

TEST(PreTokenizer, SplitsAtPunctuationSpaceAndCharacters) {
  const auto with = [](SplitStage first) {
    std::vector<SplitStage> before;
    before.push_back(std::move(first));
    return PreTokenizer(std::move(before), ByteLevelStage{}, {});
  };
  EXPECT_EQ(run(with(stage(SplitStage::Delimiter::kPunctuation, SplitBehavior::kContiguous)),
                "a$.b\u3002"),
            (Pieces{"a", "$.", "b", "\u3002"}));
  EXPECT_EQ(
      run(with(stage(SplitStage::Delimiter::kWhiteSpace, SplitBehavior::kRemoved)), " a\u3000b "),
      (Pieces{"a", "b"}));
  SplitStage character = stage(SplitStage::Delimiter::kCharacter, SplitBehavior::kRemoved);
  character.character = U'\u00e9';
  EXPECT_EQ(run(with(std::move(character)), "a\u00e9b"), (Pieces{"a", "b"}));
}

std::vector<std::string> found(std::vector<AddedToken> tokens, std::string_view text) {
  std::vector<std::string> parts;
  for (const TokenSpan& span : AddedTokenMatcher(std::move(tokens)).find(text)) {
    const std::string part(text.substr(span.begin, span.end - span.begin));
    parts.push_back(span.id ? "<" + part + ">" : part);
  }
  return parts;
}

TEST(AddedTokens, TakesTheLongestFromTheLeft) {
  EXPECT_EQ(
      found({{.content = "ab", .id = 1}, {.content = "abcd", .id = 2}, {.content = "bc", .id = 3}},
            "xabcabcdab"),
      (Pieces{"x", "<ab>", "c", "<abcd>", "<ab>"}));
}

TEST(AddedTokens, StripsWhiteSpaceThatBelongsToNoOther) {
  EXPECT_EQ(
      found({{.content = "L", .id = 1, .lstrip = true}, {.content = "R", .id = 2, .rstrip = true}},
            "a \u3000L bR \n L"),
      (Pieces{"a", "< \u3000L>", " b", "<R \n >", "<L>"}));
}

TEST(AddedTokens, SingleWordsStandAlone) {
  EXPECT_EQ(found({{.content = "ab", .id = 1, .single_word = true}},
                  "ab abc \u00e9"
                  "ab (ab)"),
            (Pieces{"<ab>",
                    " abc \u00e9"
                    "ab (",
                    "<ab>", ")"}));
}

}  // namespace
}  // namespace lockstep
