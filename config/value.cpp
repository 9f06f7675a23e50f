#include "config/value.h"

#include <array>
#include <charconv>
#include <cmath>

namespace lockstep {
namespace {

std::string real_text(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer{};
  char* const begin = buffer.data();
  char* const limit = begin + buffer.size();
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-5 && size < 1e15);
  const char* end = plain ? std::to_chars(begin, limit, value, std::chars_format::fixed).ptr
                          : std::to_chars(begin, limit, value, std::chars_format::scientific).ptr;
  std::string text(begin, static_cast<std::size_t>(end - begin));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string quoted(std::string_view text) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'u', '0', '0', kHex[byte >> 4U], kHex[byte & 15U]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string to_text(const Value& value) {
  if (!value.is_set()) return "(not set)";
  if (const auto* flag = std::get_if<bool>(&value.data)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value.data)) return real_text(*real);
  if (const auto* text = std::get_if<std::string>(&value.data)) return quoted(*text);
  std::string out = "[";
  for (const Value& each : std::get<std::vector<Value>>(value.data)) {
    out += (out.size() > 1 ? ", " : "") + to_text(each);
  }
  return out + "]";
}

const char* kind_of(const Value& value) {
  static constexpr std::array kKinds = {"nothing",  "true or false", "an integer",
                                        "a number", "a string",      "an array"};
  return kKinds.at(value.data.index());
}

}  // namespace lockstep
