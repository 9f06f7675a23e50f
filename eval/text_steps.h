#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// One change of a text, by name and arguments: "strip", "replace:a:b". White space and letter case
// are Unicode's as Python knows them (case by simple mappings, one code point for one).
//   strip, lstrip, rstrip   white space at both ends, in front, behind
//   capitalize              the first character in title case, all others in lower case
//   replace:A:B             every A by B, in one pass from the left
//   before:A, after:A       the text before or after the first A
//   remove_between:A:B      every shortest part from A to B, both included, that holds no newline
class TextStep {
 public:
  // Throws kConfig, beginning with `where`, for an unknown name or a wrong number of arguments.
  TextStep(std::string_view text, std::string_view where);

  // `text` is well-formed UTF-8. Throws kInput when before or after finds nothing.
  [[nodiscard]] std::string apply(std::string_view text) const;

 private:
  enum class Kind { kStrip, kLstrip, kRstrip, kCapitalize, kReplace, kBefore, kAfter, kRemove };
  Kind kind_ = Kind::kStrip;
  std::vector<std::string> arguments_;
};

[[nodiscard]] std::string apply_steps(const std::vector<TextStep>& steps, std::string text);

// What str.isspace() of Python holds for white space.
[[nodiscard]] bool is_python_space(char32_t code);
// The length in bytes without the white space behind.
[[nodiscard]] std::size_t length_without_trailing_space(std::string_view text);
// Code points of well-formed text.
[[nodiscard]] std::size_t count_characters(std::string_view text);

}  // namespace lockstep
