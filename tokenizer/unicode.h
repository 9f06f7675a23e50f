#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// What the well-known pre-tokenizer patterns ask about a code point. kLetter is \p{L}, kNumber is
// \p{N} (Unicode 16.0), kSpace is White_Space (25 code points; U+180E is none of them) but for CR
// and LF, which are kNewline.
enum class CharClass : std::uint8_t { kOther, kLetter, kNumber, kSpace, kNewline };

// The class of every code point below 0x110000, by index. Built once, on the first call.
// Thread-safe.
[[nodiscard]] const CharClass* char_classes();

// The two letters of the general category in Unicode 16.0, "Cn" when unassigned. code < 0x110000.
[[nodiscard]] std::string_view general_category(char32_t code);

// Simple case mappings: one code point for one, itself where there is none.
[[nodiscard]] char32_t to_lower_case(char32_t code);
[[nodiscard]] char32_t to_title_case(char32_t code);

[[nodiscard]] bool is_white_space(char32_t code);
// UTS 18 annex C `\w`: alphabetic, mark, decimal number, connector punctuation, join control.
[[nodiscard]] bool is_word_char(char32_t code);
// What Hugging Face's Punctuation pre-tokenizer isolates: ASCII punctuation and category P as it
// stood in Unicode 8.0.
[[nodiscard]] bool is_punctuation_8(char32_t code);

struct CodePoint {
  char32_t code;
  std::uint32_t bytes;  // 1 to 4
};

// The code point that starts at text[at]. The text must be well-formed and at < size.
[[nodiscard]] inline CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {((lead & 0x1fU) << 6U) | (byte(1) & 0x3fU), 2};
  if (lead < 0xf0) {
    return {((lead & 0xfU) << 12U) | ((byte(1) & 0x3fU) << 6U) | (byte(2) & 0x3fU), 3};
  }
  return {((lead & 7U) << 18U) | ((byte(1) & 0x3fU) << 12U) | ((byte(2) & 0x3fU) << 6U) |
              (byte(3) & 0x3fU),
          4};
}

// The code point that ends just before text[end]; end > 0, well-formed text.
[[nodiscard]] CodePoint code_point_before(std::string_view text, std::size_t end);

void append_utf8(std::string& out, char32_t code);

// The byte offset of the first sequence that is not well-formed UTF-8 (a surrogate, an overlong
// form, a stray or missing continuation); empty when there is none.
[[nodiscard]] std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// The text with each maximal ill-formed part replaced by U+FFFD (the practice of the Unicode
// standard, section 3.9, as browsers, Python and Rust do it).
[[nodiscard]] std::string repair_utf8(std::string_view text);

// Normalization form C of well-formed text, by the tables of utf8proc.
[[nodiscard]] std::string to_nfc(std::string_view text);

}  // namespace lockstep
