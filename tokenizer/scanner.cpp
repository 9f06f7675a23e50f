#include "tokenizer/scanner.h"

#include "base/error.h"

namespace lockstep {

std::string_view pattern_text(KnownPattern pattern) {
  switch (pattern) {
    case KnownPattern::kGpt2:
      return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    case KnownPattern::kCl100k:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case KnownPattern::kCl100kOneDigit:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  }
  LOCKSTEP_CHECK(false, "pattern out of range");
}

std::optional<KnownPattern> find_known_pattern(std::string_view text) {
  for (const auto pattern :
       {KnownPattern::kGpt2, KnownPattern::kCl100k, KnownPattern::kCl100kOneDigit}) {
    if (text == pattern_text(pattern)) return pattern;
  }
  return std::nullopt;
}

}  // namespace lockstep
