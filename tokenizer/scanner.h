#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "tokenizer/unicode.h"

namespace lockstep {

// The patterns that our own scanner runs, exactly and in linear time.
enum class KnownPattern {
  kGpt2,           // GPT-2: contractions in lower case only, numbers of any length
  kCl100k,         // cl100k_base: numbers in threes
  kCl100kOneDigit  // the same with single digits
};

// The exact text of a known pattern as regular expression, and back.
[[nodiscard]] std::string_view pattern_text(KnownPattern pattern);
[[nodiscard]] std::optional<KnownPattern> find_known_pattern(std::string_view text);

// Walks well-formed text piece by piece as the pattern's successive matches do; the known patterns
// match at every position, so the pieces cover the text. Not thread-safe; cheap to make.
template <KnownPattern kPattern>
class Scanner {
 public:
  // The text must outlive the scanner.
  explicit Scanner(std::string_view text) : text_(text), classes_(char_classes()) {}

  // The end of the piece that starts at `begin` < size.
  [[nodiscard]] std::size_t next(std::size_t begin) const {
    const Char first = at(begin);
    if (const std::size_t end = contraction(begin)) return end;
    if constexpr (kPattern == KnownPattern::kGpt2) {
      return next_gpt2(begin, first);
    } else {
      return next_cl100k(begin, first);
    }
  }

 private:
  struct Char {
    CharClass kind;
    std::size_t end;
  };

  [[nodiscard]] Char at(std::size_t position) const {
    const auto byte = static_cast<unsigned char>(text_[position]);
    if (byte < 0x80) return {classes_[byte], position + 1};
    const CodePoint point = code_point_at(text_, position);
    return {classes_[point.code], position + point.bytes};
  }

  [[nodiscard]] std::size_t run(std::size_t position, CharClass kind) const {
    while (position < text_.size()) {
      const Char next = at(position);
      if (next.kind != kind) break;
      position = next.end;
    }
    return position;
  }

  [[nodiscard]] static bool is_space(CharClass kind) {
    return kind == CharClass::kSpace || kind == CharClass::kNewline;
  }

  [[nodiscard]] bool starts(std::size_t position, CharClass kind) const {
    return position < text_.size() && at(position).kind == kind;
  }

  // '(s|t|re|ve|m|ll|d); 0 when there is none.
  [[nodiscard]] std::size_t contraction(std::size_t begin) const {
    if (text_[begin] != '\'' || begin + 1 >= text_.size()) return 0;
    const char a = letter(begin + 1);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return begin + 2;
    if (a == 'r' || a == 'v' || a == 'l') {
      const char b = begin + 2 < text_.size() ? letter(begin + 2) : '\0';
      return b == (a == 'l' ? 'l' : 'e') ? begin + 3 : 0;
    }
    if constexpr (kPattern != KnownPattern::kGpt2) {
      // U+017F, the long s, is a case variant of s.
      if (text_.substr(begin + 1, 2) == "\xc5\xbf") return begin + 3;
    }
    return 0;
  }

  [[nodiscard]] char letter(std::size_t position) const {
    const char c = text_[position];
    if constexpr (kPattern != KnownPattern::kGpt2) {
      if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
    }
    return c;
  }

  [[nodiscard]] std::size_t next_gpt2(std::size_t begin, Char first) const {
    //  ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
    if (!is_space(first.kind)) return run(first.end, first.kind);
    if (text_[begin] == ' ' && first.end < text_.size()) {
      const Char second = at(first.end);
      if (!is_space(second.kind)) return run(second.end, second.kind);
    }
    return space_run(begin, first).end_without_last;
  }

  [[nodiscard]] std::size_t next_cl100k(std::size_t begin, Char first) const {
    switch (first.kind) {
      case CharClass::kLetter:  // [^\r\n\p{L}\p{N}]?\p{L}+
        return run(first.end, CharClass::kLetter);
      case CharClass::kNumber:  // \p{N}{1,3}
        return numbers(first.end);
      case CharClass::kOther:
        if (starts(first.end, CharClass::kLetter)) return run(first.end, CharClass::kLetter);
        return other_run(first.end);
      case CharClass::kSpace:
        if (starts(first.end, CharClass::kLetter)) return run(first.end, CharClass::kLetter);
        if (text_[begin] == ' ' && starts(first.end, CharClass::kOther))
          return other_run(first.end);
        break;
      case CharClass::kNewline:
        break;
    }
    const SpaceRun spaces = space_run(begin, first);  // \s*[\r\n]+|\s+(?!\S)|\s+
    return spaces.end_of_newlines != 0 ? spaces.end_of_newlines : spaces.end_without_last;
  }

  [[nodiscard]] std::size_t numbers(std::size_t position) const {
    if constexpr (kPattern == KnownPattern::kCl100k) {
      for (int more = 0; more < 2 && starts(position, CharClass::kNumber); ++more) {
        position = at(position).end;
      }
    }
    return position;
  }

  // [^\s\p{L}\p{N}]*[\r\n]*
  [[nodiscard]] std::size_t other_run(std::size_t position) const {
    return run(run(position, CharClass::kOther), CharClass::kNewline);
  }

  struct SpaceRun {
    std::size_t end_of_newlines;   // behind the last CR or LF of the run; 0: it has none
    std::size_t end_without_last;  // \s+(?!\S)|\s+: all but the last one, when text follows
  };

  [[nodiscard]] SpaceRun space_run(std::size_t begin, Char first) const {
    std::size_t newlines = first.kind == CharClass::kNewline ? first.end : 0;
    std::size_t last = begin;
    std::size_t end = first.end;
    while (end < text_.size()) {
      const Char next = at(end);
      if (!is_space(next.kind)) return {newlines, last > begin ? last : end};
      last = end;
      end = next.end;
      if (next.kind == CharClass::kNewline) newlines = end;
    }
    return {newlines, end};
  }

  std::string_view text_;
  const CharClass* classes_;
};

}  // namespace lockstep
