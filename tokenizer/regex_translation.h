#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// Rewrites a regular expression of a tokenizer.json, which is written for Oniguruma (Ruby syntax),
// into one for PCRE2 with UTF and UCP that finds the same matches:
//
//   \p{..}, \P{..}, \d   general categories as of Unicode 16.0; a script by its script property
//   \s, \S, \w, \W, \h   spelled out, since the sets of the engines differ
//   . ^ $ \b \B \v       spelled out: line feed only, lines always
//   [a[bc]], [a&&[^b]]   nested sets and intersections
//   X{2,3}+, X{,3}       a repeated interval, not a possessive one; an interval from none
//   (..), (?<name>..)    without capture
//
// What cannot be carried over exactly is refused by name: back references, POSIX brackets, flags
// other than i, inline flags past the start, X{n}?, a quantifier on a quantifier. Known rest: (?i)
// folds single characters only (Oniguruma also takes "ss" for U+00DF).
// Throws kInput: `what` (file and field), the construct and its byte offset.
[[nodiscard]] std::string translate_regex(std::string_view pattern, std::string_view what);

// The text with every character that has a meaning in a pattern escaped.
[[nodiscard]] std::string escape_regex(std::string_view text);

}  // namespace lockstep
