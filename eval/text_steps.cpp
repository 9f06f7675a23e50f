#include "eval/text_steps.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "tokenizer/unicode.h"

namespace lockstep {
namespace {

std::string_view without_leading_space(std::string_view text) {
  while (!text.empty()) {
    const CodePoint first = code_point_at(text, 0);
    if (!is_python_space(first.code)) break;
    text.remove_prefix(first.bytes);
  }
  return text;
}

std::string_view without_trailing_space(std::string_view text) {
  return text.substr(0, length_without_trailing_space(text));
}

std::string capitalized(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    append_utf8(out, at == 0 ? to_title_case(point.code) : to_lower_case(point.code));
    at += point.bytes;
  }
  return out;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
  }
  return out += text;
}

std::string without_parts(std::string_view text, std::string_view open, std::string_view close) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = text.find(open);
    if (begin == std::string_view::npos) break;
    const std::size_t inside = begin + open.size();
    const std::size_t end = text.find(close, inside);
    if (end == std::string_view::npos) break;
    if (text.substr(inside, end - inside).find('\n') != std::string_view::npos) {
      out += text.substr(0, inside);  // a later opening may still be closed on its line
      text.remove_prefix(inside);
    } else {
      out += text.substr(0, begin);
      text.remove_prefix(end + close.size());
    }
  }
  return out += text;
}

}  // namespace

TextStep::TextStep(std::string_view text, std::string_view where) {
  struct Known {
    const char* name;
    Kind kind;
    std::size_t arguments;
  };
  static constexpr std::array<Known, 8> kKnown = {{{"strip", Kind::kStrip, 0},
                                                   {"lstrip", Kind::kLstrip, 0},
                                                   {"rstrip", Kind::kRstrip, 0},
                                                   {"capitalize", Kind::kCapitalize, 0},
                                                   {"replace", Kind::kReplace, 2},
                                                   {"before", Kind::kBefore, 1},
                                                   {"after", Kind::kAfter, 1},
                                                   {"remove_between", Kind::kRemove, 2}}};
  arguments_ = split(text, ':');
  const std::string name = arguments_.empty() ? "" : arguments_.front();
  const auto* known = std::find_if(kKnown.begin(), kKnown.end(),
                                   [&](const Known& each) { return name == each.name; });
  if (known == kKnown.end()) {
    fail(ErrorKind::kConfig, where, ": unknown step \"", printable(name),
         "\"; known: strip, lstrip, rstrip, capitalize, replace:A:B, before:A, after:A, "
         "remove_between:A:B");
  }
  arguments_.erase(arguments_.begin());
  const bool whole = arguments_.size() == known->arguments;
  if (!whole || (known->arguments > 0 && arguments_.front().empty())) {
    fail(ErrorKind::kConfig, where, ": step \"", printable(text), "\": ", name, " takes ",
         known->arguments, " arguments, each after a colon, the first not empty");
  }
  kind_ = known->kind;
}

std::string TextStep::apply(std::string_view text) const {
  switch (kind_) {
    case Kind::kStrip:
      return std::string(without_trailing_space(without_leading_space(text)));
    case Kind::kLstrip:
      return std::string(without_leading_space(text));
    case Kind::kRstrip:
      return std::string(without_trailing_space(text));
    case Kind::kCapitalize:
      return capitalized(text);
    case Kind::kReplace:
      return replaced(text, arguments_[0], arguments_[1]);
    case Kind::kRemove:
      return without_parts(text, arguments_[0], arguments_[1]);
    case Kind::kBefore:
    case Kind::kAfter:
      break;
  }
  const std::size_t at = text.find(arguments_[0]);
  if (at == std::string_view::npos) {
    fail(ErrorKind::kInput, "no \"", printable(arguments_[0]), "\" in \"", printable(text, 60),
         "\"");
  }
  return std::string(kind_ == Kind::kBefore ? text.substr(0, at)
                                            : text.substr(at + arguments_[0].size()));
}

std::string apply_steps(const std::vector<TextStep>& steps, std::string text) {
  for (const TextStep& step : steps) text = step.apply(text);
  return text;
}

bool is_python_space(char32_t code) {
  return is_white_space(code) || (code >= 0x1c && code <= 0x1f);
}

std::size_t length_without_trailing_space(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const CodePoint last = code_point_before(text, end);
    if (!is_python_space(last.code)) break;
    end -= last.bytes;
  }
  return end;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

}  // namespace lockstep
