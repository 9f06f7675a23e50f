#include "tokenizer/pattern.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "tokenizer/regex_translation.h"

namespace lockstep {
namespace {

using Pieces = std::vector<std::string>;

Pieces cut(const Pattern& pattern, std::string_view text) {
  std::vector<Span> spans;
  pattern.find_all(text, spans);
  Pieces pieces;
  for (const Span& span : spans) {
    if (span.begin != span.end) pieces.emplace_back(text.substr(span.begin, span.end - span.begin));
  }
  return pieces;
}

Pieces cut(std::string_view regex, std::string_view text) {
  return cut(Pattern::with_pcre2(regex, "test"), text);
}

// Text that visits every branch of the known patterns, well mixed with all of Unicode.
std::string random_text(const CounterRng& random, std::uint64_t& at) {
  static const std::vector<std::string> kParts = {
      "'s",  "'S", "'\u017f", "'ll",        "'LL",  "'Re",    "'v",     "'",      " ",
      "  ",  "\n", "\r\n",    "\t",         "\x0b", "\u0085", "\u00a0", "\u3000", "\u200b",
      "a",   "Bc", "\u00e9",  "\u6f22",     "1",    "23",     "\u00bd", "\u0663", "!",
      "...", "$",  "\u0301",  "\U0001f44d", "_",    "\x01"};
  std::string text;
  for (std::uint64_t parts = random.u64(at++) % 40; parts > 0; --parts) {
    const std::uint64_t kind = random.u64(at++) % 4;
    if (kind > 0) {
      text += kParts[random.u64(at++) % kParts.size()];
      continue;
    }
    const auto code = static_cast<char32_t>(random.u64(at++) % 0x110000);
    if (code < 0xd800 || code > 0xdfff) append_utf8(text, code);
  }
  return text;
}

TEST(Pattern, ScannerEqualsTheRegularExpression) {
  const CounterRng random(7, "scanner");
  std::uint64_t at = 0;
  for (const auto known :
       {KnownPattern::kGpt2, KnownPattern::kCl100k, KnownPattern::kCl100kOneDigit}) {
    const Pattern scanner(pattern_text(known), "test");
    const Pattern regex = Pattern::with_pcre2(pattern_text(known), "test");
    ASSERT_EQ(scanner.known(), known);
    ASSERT_EQ(regex.known(), std::nullopt);
    for (int i = 0; i < 3000; ++i) {
      const std::string text = random_text(random, at);
      ASSERT_EQ(cut(scanner, text), cut(regex, text)) << "text: " << text;
    }
  }
}

TEST(Pattern, ScannersKnowEveryCodePointAsTheRegularExpressionDoes) {
  const Pattern scanner(pattern_text(KnownPattern::kCl100k), "test");
  const Pattern regex = Pattern::with_pcre2(pattern_text(KnownPattern::kCl100k), "test");
  std::string text;
  for (char32_t code = 0; code < 0x33500; ++code) {  // behind it are no letters and numbers
    if (code >= 0xac01 && code < 0xe000) continue;   // Hangul syllables, all alike; surrogates
    append_utf8(text, code);
    text += "a\n";
  }
  EXPECT_TRUE(cut(scanner, text) == cut(regex, text));
}

TEST(Pattern, SplitsWhiteSpaceAndContractions) {
  const Pattern pattern(pattern_text(KnownPattern::kCl100k), "test");
  EXPECT_EQ(cut(pattern, "today\n  \nI'LL"), (Pieces{"today", "\n  \n", "I", "'LL"}));
  EXPECT_EQ(cut(pattern, "Hello  World 12345"), (Pieces{"Hello", " ", " World", " ", "123", "45"}));
  EXPECT_EQ(cut(pattern, "a \u00850"), (Pieces{"a", " ", "\u0085", "0"}));
  const Pattern gpt2(pattern_text(KnownPattern::kGpt2), "test");
  EXPECT_EQ(cut(gpt2, "I'LL don't 12345"), (Pieces{"I", "'", "LL", " don", "'t", " 12345"}));
}

// Expected values as Oniguruma gives them.
TEST(Pattern, ReadsOnigurumaSyntax) {
  EXPECT_EQ(cut("\\p{N}{1,3}+", "1234567"), (Pieces{"1234567"}));
  EXPECT_EQ(cut("a{2}+b", "aaaab"), (Pieces{"aaaab"}));
  EXPECT_EQ(cut("a{,2}", "aaaaa"), (Pieces{"aa", "aa", "a"}));
  EXPECT_EQ(cut("x$", "x\nx\n"), (Pieces{"x", "\n", "x", "\n"}));
  EXPECT_EQ(cut("\\s+$", "a  \n  "), (Pieces{"a", "  \n  "}));
  EXPECT_EQ(cut("^", "a\nb\n"), (Pieces{"a\n", "b\n"}));
  EXPECT_EQ(cut("\\h+", "abcxyz09"), (Pieces{"abc", "xyz", "09"}));
  EXPECT_EQ(cut("\\v",
                "a\x0b"
                "b"),
            (Pieces{"a", "\x0b", "b"}));
  EXPECT_EQ(cut("[a[bc]]+", "abcd"), (Pieces{"abc", "d"}));
  EXPECT_EQ(cut("[a-z&&[^b]]", "abc"), (Pieces{"a", "b", "c"}));
  EXPECT_EQ(cut("[^\\S\\n]+", "a \t\nb"), (Pieces{"a", " \t", "\nb"}));
  EXPECT_EQ(cut("[^\\W_]+", "a_b1!"), (Pieces{"a", "_", "b1", "!"}));
  EXPECT_EQ(cut("\\p{Han}+", "\u6f22\u3005\u3006\u30fc"), (Pieces{"\u6f22\u3005", "\u3006\u30fc"}));
  EXPECT_EQ(cut("\\p{^L}+", "a12"), (Pieces{"a", "12"}));
  EXPECT_EQ(cut("(?i:k)", "aK\u212a"), (Pieces{"a", "K", "\u212a"}));
  EXPECT_EQ(cut("(?<x>a)(b)", "abab"), (Pieces{"ab", "ab"}));
  EXPECT_EQ(cut("(?=b)", "abab"), (Pieces{"a", "ba", "b"}));
  EXPECT_EQ(cut("\\bfoo\\b", "foo foox foo"), (Pieces{"foo", " foox ", "foo"}));
  EXPECT_EQ(cut("\\u0061+|[\\x{1F600}-\\x{1F610}]", "aau\U0001f600"),
            (Pieces{"aa", "u", "\U0001f600"}));
}

TEST(Pattern, HasCurrentCategories) {
  EXPECT_EQ(cut("\\p{L}+", "1\U00010940"), (Pieces{"1\U00010940"}));      // unassigned
  EXPECT_EQ(cut("\\p{L}+", "1\U0002ebf0"), (Pieces{"1", "\U0002ebf0"}));  // since 15.1
  EXPECT_EQ(cut("\\s+", " \u180e"), (Pieces{" ", "\u180e"}));             // once a space
}

TEST(Pattern, RefusesByNameWhatItCannotCarryOver) {
  for (const char* regex :
       {"(a)\\1",   "[[:alpha:]]", "(?m:.)", "(?x: a)", "a(?i)b", "a{2}?", "a**",
        "\\R",      "\\X",         "\\pL",   "[]a]",    "[b-a]",  "(a",    "a)",
        "\\",       "[a",          "*a",     "(?<!a",   "\\k<a>", "(?#x)", "\\p{Nonsense}",
        "\\xe9",    "\\x{110000}", "(*UTF)", "(?(1)a)", "\\p{",   "\xff",  "[a&&]",
        "a{99999}", "(?>"}) {
    try {
      const Pattern pattern(regex, "t.json: p");
      FAIL() << regex;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      EXPECT_TRUE(std::string(error.what()).starts_with("t.json: p")) << error.what();
    }
  }
  EXPECT_THROW(Pattern(std::string(70'000, 'a'), "t"), Error);
  EXPECT_THROW(Pattern(std::string(60'000, '('), "t"), Error);
  EXPECT_THROW(Pattern(std::string(60'000, '['), "t"), Error);
}

TEST(Pattern, GivesUpOnCatastrophicBacktracking) {
  const Pattern pattern("(?:a|a)*c", "t.json: p");
  std::vector<Span> spans;
  try {
    pattern.find_all(std::string(60, 'a') + "bc", spans);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(error.what()).find("gives up at byte 0"), std::string::npos)
        << error.what();
  }
}

TEST(Pattern, MatchesLongTextWithoutDeepStack) {
  std::vector<Span> spans;
  Pattern::with_pcre2("(?:[ab]|c)+", "t").find_all(std::string(100'000, 'a'), spans);
  EXPECT_EQ(spans.size(), 1U);
}

TEST(Pattern, EscapesText) {
  EXPECT_EQ(cut(escape_regex("a.(b)|[c]"), "a.(b)|[c]axb"), (Pieces{"a.(b)|[c]", "axb"}));
}

}  // namespace
}  // namespace lockstep
