#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// An entry of `added_tokens`: text that is one token wherever it stands.
struct AddedToken {
  std::string content;
  std::uint32_t id = 0;
  bool single_word = false;  // not beside a word character
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and behind it
  bool normalized = false;   // looked for after normalization
  bool special = false;      // left out of text when decoding skips special tokens
};

// Part of a text: an added token, or ordinary text.
struct TokenSpan {
  std::size_t begin;
  std::size_t end;
  std::optional<std::uint32_t> id;
};

// Finds added tokens in text: at each place the longest, from left to right without overlap.
// Immutable and thread-safe.
class AddedTokenMatcher {
 public:
  // Contents must not be empty and at most 64 KiB. Of two equal contents the first counts.
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  [[nodiscard]] bool empty() const { return tokens_.empty(); }
  // Tokens and the text between them, in order; well-formed text.
  [[nodiscard]] std::vector<TokenSpan> find(std::string_view text) const;

 private:
  struct Node {
    std::uint32_t first_child;  // 0: none
    std::uint32_t sibling;      // the next child of the same parent; 0: none
    std::uint32_t token;        // 1 + index into tokens_; 0: none ends here
    unsigned char byte;
  };
  [[nodiscard]] std::uint32_t child(std::uint32_t node, unsigned char byte) const;
  // The longest token at text[at], or null.
  [[nodiscard]] const AddedToken* longest(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;             // a trie; node 0 is its root
  std::vector<std::uint32_t> by_byte_;  // the root's children
};

}  // namespace lockstep
