#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// The alphabet of byte-level BPE (GPT-2, Radford et al. 2019): each byte is written as one
// printable code point. '!'..'~', U+00A1..U+00AC and U+00AE..U+00FF stand for themselves, the other
// 68 bytes, in order, for U+0100..U+0143 (a space is U+0120).

[[nodiscard]] char32_t byte_level_char(std::uint8_t byte);

// The bytes in that alphabet, as UTF-8.
[[nodiscard]] std::string to_byte_level(std::string_view bytes);

// The inverse; empty when the text holds a code point that is not of the alphabet. Text must be
// well-formed UTF-8.
[[nodiscard]] std::optional<std::string> from_byte_level(std::string_view text);

}  // namespace lockstep
