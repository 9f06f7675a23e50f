#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace lockstep {
namespace {

bool word_before(std::string_view text, std::size_t end) {
  return end > 0 && is_word_char(code_point_before(text, end).code);
}

bool word_at(std::string_view text, std::size_t at) {
  return at < text.size() && is_word_char(code_point_at(text, at).code);
}

std::size_t skip_space_back(std::string_view text, std::size_t end) {
  while (end > 0) {
    const CodePoint point = code_point_before(text, end);
    if (!is_white_space(point.code)) break;
    end -= point.bytes;
  }
  return end;
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    if (!is_white_space(point.code)) break;
    at += point.bytes;
  }
  return at;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)), nodes_{Node{0, 0, 0, 0}}, by_byte_(256, 0) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    LOCKSTEP_CHECK(!tokens_[i].content.empty(), "added token without content");
    std::uint32_t node = 0;
    for (const char c : tokens_[i].content) {
      const auto byte = static_cast<unsigned char>(c);
      std::uint32_t next = child(node, byte);
      if (next == 0) {
        next = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back({0, nodes_[node].first_child, 0, byte});
        nodes_[node].first_child = next;
        if (node == 0) by_byte_[byte] = next;
      }
      node = next;
    }
    if (nodes_[node].token == 0) nodes_[node].token = static_cast<std::uint32_t>(i) + 1;
  }
}

std::uint32_t AddedTokenMatcher::child(std::uint32_t node, unsigned char byte) const {
  if (node == 0) return by_byte_[byte];
  std::uint32_t next = nodes_[node].first_child;
  while (next != 0 && nodes_[next].byte != byte) next = nodes_[next].sibling;
  return next;
}

const AddedToken* AddedTokenMatcher::longest(std::string_view text, std::size_t at) const {
  std::uint32_t token = 0;
  std::uint32_t node = 0;
  while (at < text.size()) {
    node = child(node, static_cast<unsigned char>(text[at++]));
    if (node == 0) break;
    if (nodes_[node].token != 0) token = nodes_[node].token;
  }
  return token == 0 ? nullptr : &tokens_[token - 1];
}

std::vector<TokenSpan> AddedTokenMatcher::find(std::string_view text) const {
  std::vector<TokenSpan> spans;
  std::size_t rest = 0;  // where ordinary text goes on
  for (std::size_t at = 0; at < text.size();) {
    if (by_byte_[static_cast<unsigned char>(text[at])] == 0) {
      ++at;
      continue;
    }
    const AddedToken* token = longest(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + token->content.size();
    at = end;  // a match that single_word refuses takes its place all the same
    if (token->single_word && (word_before(text, begin) || word_at(text, end))) continue;
    if (token->lstrip) begin = std::max(skip_space_back(text, begin), rest);
    if (token->rstrip) end = skip_space(text, end);
    if (rest < begin) spans.push_back({rest, begin, std::nullopt});
    spans.push_back({begin, end, token->id});
    rest = end;
  }
  if (rest != text.size()) spans.push_back({rest, text.size(), std::nullopt});
  return spans;
}

}  // namespace lockstep
