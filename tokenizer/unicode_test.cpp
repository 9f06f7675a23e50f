#include "tokenizer/unicode.h"

#include <gtest/gtest.h>

#include "tokenizer/byte_level.h"

namespace lockstep {
namespace {

TEST(Unicode, CountsTheLettersAndNumbersOfUnicode16) {
  const CharClass* classes = char_classes();
  std::size_t letters = 0;
  std::size_t numbers = 0;
  for (std::size_t code = 0; code < 0x110000; ++code) {
    letters += classes[code] == CharClass::kLetter ? 1 : 0;
    numbers += classes[code] == CharClass::kNumber ? 1 : 0;
  }
  EXPECT_EQ(letters, 141'028U);
  EXPECT_EQ(numbers, 1'911U);
}

TEST(Unicode, HasTheWhiteSpaceOfTheStandard) {
  std::size_t spaces = 0;
  for (char32_t code = 0; code < 0x110000; ++code) spaces += is_white_space(code) ? 1 : 0;
  EXPECT_EQ(spaces, 25U);
  EXPECT_FALSE(is_white_space(0x180e));
  EXPECT_EQ(char_classes()[0x85], CharClass::kSpace);
  EXPECT_EQ(char_classes()['\n'], CharClass::kNewline);
}

TEST(Unicode, FindsTheFirstByteThatIsNotWellFormed) {
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("plain ascii, long enough for words"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("\u00e9\u6f22\U0001f44d"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("a\xff"
                              "b"),
            1U);
  EXPECT_EQ(find_invalid_utf8("abc\xc3"), 3U);
  EXPECT_EQ(find_invalid_utf8("\xed\xa0\x80"), 0U);         // a surrogate
  EXPECT_EQ(find_invalid_utf8("0123456789\xc0\x80"), 10U);  // an overlong NUL
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0U);     // past U+10FFFF
}

TEST(Unicode, RepairsEachMaximalIllFormedPart) {
  EXPECT_EQ(repair_utf8("a\xff"
                        "b"),
            "a\ufffd"
            "b");
  EXPECT_EQ(repair_utf8("\xf0\x9f\x91"
                        "x"),
            "\ufffdx");  // a cut sequence is one part
  EXPECT_EQ(repair_utf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(repair_utf8("\xf0\x9f"), "\ufffd");
  EXPECT_EQ(repair_utf8("\u00e9"), "\u00e9");
}

TEST(Unicode, ComposesToNfc) {
  EXPECT_EQ(to_nfc("e\u0301 A\u030a \u1100\u1161"), "\u00e9 \u00c5 \uac00");
  EXPECT_EQ(to_nfc(std::string_view("a\0e\u0301", 5)), std::string_view("a\0\u00e9", 4));
  EXPECT_EQ(to_nfc(""), "");
  EXPECT_EQ(to_nfc("a\u0301\u0323"), "\u1ea1\u0301");  // the mark below comes first
}

TEST(Unicode, ComposesLongRunsOfMarksInNearlyLinearTime) {
  std::string text = "a";
  std::string sorted = "a";
  for (int i = 0; i < 100'000; ++i) text += "\u0315\u0316";
  for (int i = 0; i < 100'000; ++i) sorted += "\u0316";
  for (int i = 0; i < 100'000; ++i) sorted += "\u0315";
  EXPECT_TRUE(to_nfc(text) == sorted);
}

TEST(Unicode, WritesWhatItReads) {
  std::string text;
  for (const char32_t code : {U'a', U'\u00e9', U'\u6f22', U'\U0010ffff'}) {
    text.clear();
    append_utf8(text, code);
    EXPECT_EQ(code_point_at(text, 0).code, code);
    EXPECT_EQ(code_point_at(text, 0).bytes, text.size());
    EXPECT_EQ(code_point_before("x" + text, text.size() + 1).code, code);
  }
}

TEST(ByteLevel, MapsEveryByteThereAndBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  const std::string mapped = to_byte_level(bytes);
  EXPECT_EQ(from_byte_level(mapped), bytes);
  EXPECT_EQ(to_byte_level(" \n!"), "\u0120\u010a!");
  EXPECT_EQ(from_byte_level("a b"), std::nullopt);
  EXPECT_EQ(from_byte_level("\u0144"), std::nullopt);
}

}  // namespace
}  // namespace lockstep
