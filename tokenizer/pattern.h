#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/scanner.h"

namespace lockstep {

// A part of a text, in bytes: a match of a pattern, or what lies between two.
struct Span {
  std::size_t begin;
  std::size_t end;
  bool match;
};

// A regular expression of a tokenizer.json. Known patterns run on our own scanner (scanner.h), the
// others on PCRE2 (regex_translation.h) with a limit on backtracking. Immutable and thread-safe.
class Pattern {
 public:
  // `what` names the file and the field, for errors. Throws kInput when the pattern is not valid,
  // not supported, or longer than 64 KiB.
  Pattern(std::string_view regex, std::string_view what);
  // Always PCRE2, so that the scanner can be compared with it.
  [[nodiscard]] static Pattern with_pcre2(std::string_view regex, std::string_view what);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  [[nodiscard]] std::optional<KnownPattern> known() const { return known_; }

  // Appends spans that cover the text in order: every match, and what lies between. Empty matches
  // stand as empty spans. Text must be well-formed. Throws kInput, with the byte offset, when a
  // match costs more steps than the limit.
  void find_all(std::string_view text, std::vector<Span>& spans) const;

 private:
  struct Compiled;
  Pattern();
  void compile(std::string_view regex, std::string_view what);
  void find_all_pcre2(std::string_view text, std::vector<Span>& spans) const;

  std::optional<KnownPattern> known_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace lockstep
