#include "tokenizer/byte_level.h"

#include <array>

#include "tokenizer/unicode.h"

namespace lockstep {
namespace {

constexpr char32_t kFirstMoved = 0x100;
constexpr std::size_t kMoved = 68;

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Alphabet {
  std::array<char32_t, 256> chars{};
  std::array<std::uint8_t, kMoved> moved{};
};

constexpr Alphabet kAlphabet = [] {
  Alphabet alphabet;
  std::size_t moved = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (stands_for_itself(byte)) {
      alphabet.chars[byte] = byte;
    } else {
      alphabet.chars[byte] = kFirstMoved + static_cast<char32_t>(moved);
      alphabet.moved[moved++] = static_cast<std::uint8_t>(byte);
    }
  }
  return alphabet;
}();

}  // namespace

char32_t byte_level_char(std::uint8_t byte) { return kAlphabet.chars[byte]; }

std::string to_byte_level(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  for (const char c : bytes) append_utf8(out, byte_level_char(static_cast<std::uint8_t>(c)));
  return out;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = code_point_at(text, at);
    at += bytes;
    if (code < kFirstMoved && stands_for_itself(code)) {
      out += static_cast<char>(static_cast<unsigned char>(code));
    } else if (code >= kFirstMoved && code < kFirstMoved + kMoved) {
      out += static_cast<char>(kAlphabet.moved[code - kFirstMoved]);
    } else {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace lockstep
