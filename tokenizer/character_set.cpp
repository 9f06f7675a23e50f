#include "tokenizer/character_set.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "tokenizer/unicode_changes.h"

namespace lockstep {
namespace {

constexpr std::string_view kSpaceSet =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kHexSet = "0-9A-Fa-f";

constexpr std::array<std::string_view, 37> kCategories = {
    "C",  "Cc", "Cf", "Cn", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",
    "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi",
    "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs"};

}  // namespace

std::string_view space_set() { return kSpaceSet; }
std::string_view hex_digit_set() { return kHexSet; }

std::string hex_escape(char32_t code) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  do {
    digits.insert(digits.begin(), kDigits[code & 15U]);
    code >>= 4U;
  } while (code != 0);
  return "\\x{" + digits + "}";
}

bool is_category(std::string_view name) {
  return std::find(kCategories.begin(), kCategories.end(), name) != kCategories.end();
}

std::string category_set(std::string_view name) {
  std::string set = concat("\\p{", name, "}");
  for (const CategoryChange& change : category_changes_since_14()) {
    if (std::string_view(change.category).substr(0, name.size()) != name) continue;
    set += hex_escape(change.first);
    if (change.last != change.first) set += "-" + hex_escape(change.last);
  }
  return set;
}

std::string word_set() {
  return category_set("L") + category_set("M") + category_set("Nd") + category_set("Nl") +
         category_set("Pc") +
         R"(\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
}

std::string bare_word_set() { return word_set() + R"(\xb2\xb3\xb9\xbc-\xbe)"; }

void CharacterSet::add(const CharacterSet& other) {
  plain_ += other.plain_;
  others_.insert(others_.end(), other.others_.begin(), other.others_.end());
}

std::string CharacterSet::expression() const {
  std::string either = plain_.empty() ? "" : concat("[", plain_, "]");
  if (others_.empty()) return either;
  for (const std::string& other : others_) {
    if (!either.empty()) either += '|';
    either += other;
  }
  return concat("(?:", either, ")");
}

std::string CharacterSet::negation() const {
  if (others_.empty()) return concat("[^", plain_, "]");
  return concat("(?:(?!", expression(), ")[\\x00-\\x{10ffff}])");
}

}  // namespace lockstep
