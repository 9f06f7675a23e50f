#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pattern.h"

namespace lockstep {

// What becomes of the matches of a split (Hugging Face `tokenizers`, SplitDelimiterBehavior).
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Turns spans that cover a text into the pieces that the behavior keeps, in place; the empty ones
// are dropped. Match flags mean nothing afterwards. `invert` swaps matches and the rest first.
void apply_split(SplitBehavior behavior, bool invert, std::vector<Span>& spans);

// One step of a pre-tokenizer: how it finds its delimiters and what becomes of them.
struct SplitStage {
  enum class Delimiter { kPattern, kNumber, kPunctuation, kWhiteSpace, kCharacter };
  Delimiter delimiter = Delimiter::kPattern;
  std::optional<Pattern> pattern;  // for kPattern
  char32_t character = 0;          // for kCharacter
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
};

// The byte-level step: after it, text is in the byte-level alphabet.
struct ByteLevelStage {
  bool add_prefix_space = false;   // of each piece that does not begin with a space
  std::optional<Pattern> pattern;  // GPT-2's, unless use_regex is off
};

// Cuts text into the pieces within which BPE merges. Immutable and thread-safe.
class PreTokenizer {
 public:
  // Splits before the byte-level step, that step, and splits behind it, which see its alphabet.
  PreTokenizer(std::vector<SplitStage> before, ByteLevelStage byte_level,
               std::vector<SplitStage> after);

  // Calls sink(std::string_view piece) for every piece of the text, in order; pieces are not empty.
  // Text must be well-formed. Throws as Pattern::find_all.
  template <class Sink>
  void for_each_piece(std::string_view text, Sink&& sink) const {
    if (known_) return scan(text, sink);
    Pieces pieces;
    split(text, pieces);
    for (const std::string_view piece : pieces.views) sink(piece);
  }

 private:
  struct Pieces {
    std::vector<std::string_view> views;
    std::deque<std::string> owned;  // what pieces with a space put before them point into
  };

  void split(std::string_view text, Pieces& pieces) const;

  template <class Sink>
  void scan(std::string_view text, Sink& sink) const {
    switch (*known_) {
      case KnownPattern::kGpt2:
        return scan_with<KnownPattern::kGpt2>(text, sink);
      case KnownPattern::kCl100k:
        return scan_with<KnownPattern::kCl100k>(text, sink);
      case KnownPattern::kCl100kOneDigit:
        return scan_with<KnownPattern::kCl100kOneDigit>(text, sink);
    }
  }

  template <KnownPattern kPattern, class Sink>
  static void scan_with(std::string_view text, Sink& sink) {
    const Scanner<kPattern> scanner(text);
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = scanner.next(begin);
      sink(text.substr(begin, end - begin));
      begin = end;
    }
  }

  std::vector<SplitStage> before_;
  ByteLevelStage byte_level_;
  std::vector<SplitStage> after_;
  std::optional<KnownPattern> known_;  // when the whole is one scan of a known pattern
};

}  // namespace lockstep
