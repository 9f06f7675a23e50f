#include "tokenizer/regex_translation.h"

#include <array>
#include <cctype>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "tokenizer/character_set.h"
#include "tokenizer/unicode.h"

namespace lockstep {
namespace {

// What an escape stands for.
struct Escape {
  std::string set;       // the insides of a set when it is one,
  bool negated = false;  // to be taken negated
  std::optional<char32_t> literal;
};

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view what) : pattern_(pattern), what_(what) {}

  std::string run() {
    while (at_ < pattern_.size()) step();
    if (!groups_.empty()) refuse("a group that is not closed", groups_.back().pattern_at);
    return std::move(out_);
  }

 private:
  struct Group {
    std::size_t out_begin;
    std::size_t pattern_at;
    bool assertion;
  };

  [[noreturn]] void refuse(std::string_view construct, std::size_t offset) const {
    fail(ErrorKind::kInput, what_, ": the pattern uses ", construct, " at byte ", offset,
         ", which is not supported: ", printable(pattern_));
  }

  [[nodiscard]] bool looking_at(std::string_view text) const {
    return pattern_.substr(at_, text.size()) == text;
  }

  void step() {
    switch (pattern_[at_]) {
      case '\\':
        escape_outside();
        break;
      case '[':
        atom(read_set(0).expression());
        break;
      case '(':
        open_group();
        break;
      case ')':
        close_group();
        break;
      case '|':
        ++at_;
        out_ += '|';
        atom_begin_.reset();
        break;
      case '.':
        ++at_;
        atom("[^\\n]");
        break;
      case '^':
        ++at_;
        assertion("(?:\\A|(?<=\\n)(?!\\z))");
        break;
      case '$':
        ++at_;
        assertion("(?=\\n|\\z)");
        break;
      case '*':
      case '+':
      case '?':
        quantifier();
        break;
      case '{':
        if (!interval()) {
          ++at_;
          atom("\\{");
        }
        break;
      default:
        literal_outside();
    }
  }

  void atom(std::string_view text) {
    atom_begin_ = out_.size();
    out_ += text;
  }

  void assertion(std::string_view text) {
    atom_begin_.reset();
    out_ += text;
  }

  void literal_outside() {
    const auto [code, bytes] = code_point_at(pattern_, at_);
    at_ += bytes;
    atom(literal(code));
  }

  // One character, escaped unless it is a letter, a digit or not ASCII.
  static std::string literal(char32_t code) {
    std::string text;
    if (code < 0x80 && std::isalnum(static_cast<int>(code)) == 0) return hex_escape(code);
    append_utf8(text, code);
    return text;
  }

  void escape_outside() {
    const std::size_t begin = at_;
    if (looking_at("\\b") || looking_at("\\B")) {
      const std::string word = "[" + bare_word_set() + "]";
      const bool boundary = pattern_[at_ + 1] == 'b';
      at_ += 2;
      assertion(boundary
                    ? concat("(?:(?<=", word, ")(?!", word, ")|(?<!", word, ")(?=", word, "))")
                    : concat("(?:(?<=", word, ")(?=", word, ")|(?<!", word, ")(?!", word, "))"));
      return;
    }
    for (const std::string_view same : {"\\A", "\\z"}) {
      if (looking_at(same)) {
        at_ += 2;
        assertion(same);
        return;
      }
    }
    if (looking_at("\\Z")) {
      at_ += 2;
      assertion("(?=\\n?\\z)");
      return;
    }
    if (looking_at("\\w") || looking_at("\\W")) {
      at_ += 2;
      return atom(concat(pattern_[at_ - 1] == 'w' ? "[" : "[^", bare_word_set(), "]"));
    }
    const Escape escape = read_escape(begin);
    if (escape.literal) {
      atom(literal(*escape.literal));
    } else {
      atom(concat(escape.negated ? "[^" : "[", escape.set, "]"));
    }
  }

  // The escape at at_ that stands for a character or a set of them.
  Escape read_escape(std::size_t begin) {
    if (++at_ >= pattern_.size()) refuse("a backslash at its end", begin);
    const char c = pattern_[at_];
    if (static_cast<unsigned char>(c) >= 0x80) {
      const auto [code, bytes] = code_point_at(pattern_, at_);
      at_ += bytes;
      return {.set = {}, .negated = false, .literal = code};
    }
    ++at_;
    const auto character = [](char32_t code) {
      return Escape{.set = {}, .negated = false, .literal = code};
    };
    const auto set = [](std::string_view inside, bool negated) {
      return Escape{std::string(inside), negated, std::nullopt};
    };
    switch (c) {
      case 's':
      case 'S':
        return set(space_set(), c == 'S');
      case 'w':
      case 'W':
        return set(word_set(), c == 'W');
      case 'd':
      case 'D':
        return set(category_set("Nd"), c == 'D');
      case 'h':
      case 'H':
        return set(hex_digit_set(), c == 'H');
      case 'p':
      case 'P':
        return property(begin, c == 'P');
      case 'n':
        return character('\n');
      case 'r':
        return character('\r');
      case 't':
        return character('\t');
      case 'f':
        return character('\f');
      case 'v':
        return character('\v');
      case 'a':
        return character('\a');
      case 'e':
        return character(0x1b);
      case 'x':
      case 'u':
        return character(code_escape(begin, c));
      default:
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
          refuse(concat("the escape '\\", c, "'"), begin);
        }
        return character(static_cast<unsigned char>(c));
    }
  }

  // \xHH (ASCII), \x{H...}, \uHHHH; at_ is behind the letter.
  char32_t code_escape(std::size_t begin, char kind) {
    const bool braces = kind == 'x' && at_ < pattern_.size() && pattern_[at_] == '{';
    if (braces) ++at_;
    const std::size_t most = braces ? 8 : kind == 'x' ? 2 : 4;
    std::uint64_t code = 0;
    std::size_t digits = 0;
    while (digits < most && at_ < pattern_.size() &&
           std::isxdigit(static_cast<unsigned char>(pattern_[at_])) != 0) {
      const char c = pattern_[at_++];
      code = code * 16 + static_cast<std::uint64_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
      ++digits;
    }
    if (braces && (at_ >= pattern_.size() || pattern_[at_++] != '}')) digits = 0;
    const bool whole = kind == 'u' ? digits == 4 : digits > 0;
    const bool single_byte = kind != 'x' || braces || code < 0x80;
    if (!whole || !single_byte || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      refuse("a character code that is none", begin);
    }
    return static_cast<char32_t>(code);
  }

  Escape property(std::size_t begin, bool negated) {
    const std::size_t close = pattern_.find('}', at_);
    if (at_ >= pattern_.size() || pattern_[at_] != '{' || close == std::string_view::npos) {
      refuse("a property without braces", begin);
    }
    std::string_view name = pattern_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    if (name.substr(0, 1) == "^") {
      negated = !negated;
      name.remove_prefix(1);
    }
    for (const char c : name) {
      if (std::isalpha(static_cast<unsigned char>(c)) == 0 && c != '_') {
        refuse(concat("the property '", printable(name), "'"), begin);
      }
    }
    if (is_category(name)) return {category_set(name), negated, std::nullopt};
    // A longer name is a script; the library refuses one that it does not know.
    return {concat("\\p{sc:", name, "}"), negated, std::nullopt};
  }

  void open_group() {
    const std::size_t begin = at_;
    std::string open = "(?:";
    bool assertion = false;
    ++at_;
    if (looking_at("?")) {
      for (const std::string_view look : {"?=", "?!", "?<=", "?<!"}) {
        if (!looking_at(look)) continue;
        open = concat("(", look);
        assertion = true;
        at_ += look.size();
        return push_group(begin, open, assertion);
      }
      for (const std::string_view same : {"?:", "?>", "?i:", "?-i:"}) {
        if (!looking_at(same)) continue;
        open = concat("(", same);
        at_ += same.size();
        return push_group(begin, open, assertion);
      }
      if (looking_at("?i)") && begin == 0) {
        out_ += "(?i)";
        at_ += 3;
        return;
      }
      const std::size_t close = pattern_.find('>', at_);
      if (!looking_at("?<") || close == std::string_view::npos) {
        refuse(concat("the group '(", printable(pattern_.substr(at_, 3)), "'"), begin);
      }
      at_ = close + 1;
    }
    push_group(begin, open, assertion);
  }

  void push_group(std::size_t begin, std::string_view open, bool assertion) {
    constexpr std::size_t kMaxDepth = 200;
    if (groups_.size() >= kMaxDepth) refuse("groups nested too deeply", begin);
    groups_.push_back({out_.size(), begin, assertion});
    out_ += open;
    atom_begin_.reset();
  }

  void close_group() {
    if (groups_.empty()) refuse("a ')' that closes nothing", at_);
    ++at_;
    out_ += ')';
    atom_begin_.reset();
    if (!groups_.back().assertion) atom_begin_ = groups_.back().out_begin;
    groups_.pop_back();
  }

  void quantifier() {
    if (!atom_begin_) refuse("a quantifier with nothing to repeat", at_);
    out_ += pattern_[at_++];
    if (at_ < pattern_.size() && (pattern_[at_] == '+' || pattern_[at_] == '?')) {
      out_ += pattern_[at_++];
    }
    repeated();
  }

  // {n}, {n,}, {n,m}, {,m}; false when the brace is an ordinary character.
  bool interval() {
    const std::size_t begin = at_;
    const std::size_t close = pattern_.find('}', at_);
    if (close == std::string_view::npos) return false;
    const std::string_view inside = pattern_.substr(at_ + 1, close - at_ - 1);
    const std::size_t comma = inside.find(',');
    std::string low(inside.substr(0, comma));
    const std::string high(comma == std::string_view::npos ? "" : inside.substr(comma + 1));
    if (low.empty() && high.empty()) return false;
    for (const std::string& digits : {low, high}) {
      for (const char c : digits) {
        if (std::isdigit(static_cast<unsigned char>(c)) == 0) return false;
      }
      if (digits.size() > 4) refuse("a repetition of more than 9999", begin);
    }
    if (!atom_begin_) refuse("a quantifier with nothing to repeat", begin);
    if (low.empty()) low = "0";
    at_ = close + 1;
    out_ +=
        comma == std::string_view::npos ? concat("{", low, "}") : concat("{", low, ",", high, "}");
    if (at_ < pattern_.size() && pattern_[at_] == '?') {
      if (comma == std::string_view::npos) refuse("'{n}?'", begin);
      out_ += pattern_[at_++];
    } else if (at_ < pattern_.size() && pattern_[at_] == '+') {
      ++at_;
      out_.insert(*atom_begin_, "(?:");
      out_ += ")+";
    }
    repeated();
    return true;
  }

  // A quantifier on a quantifier would be possessive or lazy in one engine and nested in the other.
  void repeated() {
    if (at_ < pattern_.size() &&
        std::string_view("*+?").find(pattern_[at_]) != std::string_view::npos) {
      refuse("a quantifier on a quantifier", at_);
    }
    atom_begin_.reset();
  }

  // A set, at_ on its '['.
  CharacterSet read_set(int depth) {
    constexpr int kMaxDepth = 16;
    const std::size_t begin = at_++;
    if (depth > kMaxDepth) refuse("sets nested too deeply", begin);
    const bool negated = looking_at("^");
    if (negated) ++at_;
    CharacterSet set = read_operand(begin, depth);
    std::string conditions;  // of an intersection: what must hold besides
    while (looking_at("&&")) {
      at_ += 2;
      conditions += concat("(?=", set.expression(), ")");
      set = read_operand(begin, depth);
    }
    ++at_;
    if (!conditions.empty()) {
      CharacterSet both;
      both.add_expression(concat("(?:", conditions, set.expression(), ")"));
      set = std::move(both);
    }
    if (!negated) return set;
    CharacterSet rest;
    rest.add_expression(set.negation());
    return rest;
  }

  // Items up to the set's end or an "&&".
  CharacterSet read_operand(std::size_t begin, int depth) {
    CharacterSet set;
    while (true) {
      if (at_ >= pattern_.size()) refuse("a set that is not closed", begin);
      const std::size_t here = at_;
      if (pattern_[at_] == ']' || looking_at("&&")) {
        if (set.empty()) refuse("an empty set", begin);
        return set;
      }
      if (looking_at("[:")) refuse("a POSIX bracket", here);
      if (pattern_[at_] == '[') {
        set.add(read_set(depth + 1));
        continue;
      }
      const Escape first = set_item(here);
      if (first.literal) {
        set.add(hex_escape(*first.literal));
      } else if (first.negated) {
        set.add_expression(concat("[^", first.set, "]"));
      } else {
        set.add(first.set);
      }
      const bool range = first.literal && at_ + 1 < pattern_.size() && pattern_[at_] == '-' &&
                         pattern_[at_ + 1] != ']';
      if (!range) continue;
      ++at_;
      const Escape last = pattern_[at_] == '[' ? Escape{} : set_item(here);
      if (!last.literal || *last.literal < *first.literal)
        refuse("a range without a proper end", here);
      set.add("-" + hex_escape(*last.literal));
    }
  }

  Escape set_item(std::size_t here) {
    if (looking_at("\\b")) {
      at_ += 2;
      return {.set = {}, .negated = false, .literal = U'\b'};
    }
    if (pattern_[at_] == '\\') return read_escape(here);
    const auto [code, bytes] = code_point_at(pattern_, at_);
    at_ += bytes;
    return {.set = {}, .negated = false, .literal = code};
  }

  std::string_view pattern_;
  std::string_view what_;
  std::size_t at_ = 0;
  std::string out_;
  std::optional<std::size_t>
      atom_begin_;  // where in out_ the atom begins that a quantifier repeats
  std::vector<Group> groups_;
};

}  // namespace

std::string translate_regex(std::string_view pattern, std::string_view what) {
  if (const auto offset = find_invalid_utf8(pattern)) {
    fail(ErrorKind::kInput, what, ": the pattern is not valid UTF-8 at byte ", *offset);
  }
  return Translator(pattern, what).run();
}

std::string escape_regex(std::string_view text) {
  static constexpr std::string_view kSpecial = R"(\.+*?()|[]{}^$)";
  std::string out;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace lockstep
