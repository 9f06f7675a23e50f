#pragma once

#include <span>

namespace lockstep {

// A run of code points whose general category in Unicode 16.0 (UnicodeData.txt) differs from the
// one in Unicode 14.0; nearly all were unassigned then.
struct CategoryChange {
  char32_t first;
  char32_t last;
  char category[3];  // "Lo", "Nd", ...
};

// In order of code point. The libraries of the system (PCRE2 10.42: Unicode 14; utf8proc 2.8: 15)
// are older than the tables that tokenizers in use were run with, so both are brought up to date.
[[nodiscard]] std::span<const CategoryChange> category_changes_since_14();

}  // namespace lockstep
