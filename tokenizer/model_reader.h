#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "tokenizer/json_field.h"
#include "tokenizer/tokenizer_file.h"

namespace lockstep {

// Reads `model` and `added_tokens` of a tokenizer.json: vocabulary, merges, ids.
class ModelReader {
 public:
  explicit ModelReader(TokenizerFile& file) : file_(file) {}
  // Throws kInput, naming the field, for what is malformed or not supported.
  void read(const JsonField& root);

 private:
  void check_options(const JsonField& model) const;
  void read_vocabulary(const JsonField& vocabulary);
  void read_merges(const JsonField& merges);
  // `field` makes the merge's JsonField, which only an error needs.
  template <class Field>
  void add_merge(const Field& field, const std::string& left, const std::string& right);
  void read_byte_tokens(const JsonField& model);
  void read_added_tokens(const JsonField& tokens);
  void add_token(const JsonField& field, AddedToken token);
  [[nodiscard]] std::uint32_t find(const std::string& token) const;

  TokenizerFile& file_;
  std::unordered_map<std::string, std::uint32_t>
      ids_;  // of the model's tokens, as the file writes them
  std::unordered_set<std::string> added_;
  std::uint32_t next_added_id_ = 0;  // what an added token outside the vocabulary gets
};

}  // namespace lockstep
