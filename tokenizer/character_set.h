#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The insides of PCRE2 sets "[...]", to compose patterns with.
[[nodiscard]] std::string hex_escape(char32_t code);  // \x{..}
[[nodiscard]] std::string_view space_set();           // White_Space
[[nodiscard]] std::string_view hex_digit_set();
// What Oniguruma calls a word character: as is_word_char() of unicode.h without the join controls.
[[nodiscard]] std::string word_set();
// Outside of sets it takes the superscript digits and fractions of Latin-1 for word characters,
// too.
[[nodiscard]] std::string bare_word_set();
// \p{name} of a general category, as of Unicode 16.0 whatever version the library has.
[[nodiscard]] std::string category_set(std::string_view name);
[[nodiscard]] bool is_category(std::string_view name);

// A set of characters under construction: a plain part that fits in "[...]", and expressions for
// one character that do not (negated sets, intersections).
class CharacterSet {
 public:
  void add(std::string_view plain) { plain_ += plain; }
  // An expression that matches one character.
  void add_expression(std::string expression) { others_.push_back(std::move(expression)); }
  void add(const CharacterSet& other);

  [[nodiscard]] bool empty() const { return plain_.empty() && others_.empty(); }
  // A PCRE2 expression for one character of the set, and for one that is not in it.
  [[nodiscard]] std::string expression() const;
  [[nodiscard]] std::string negation() const;

 private:
  std::string plain_;
  std::vector<std::string> others_;
};

}  // namespace lockstep
