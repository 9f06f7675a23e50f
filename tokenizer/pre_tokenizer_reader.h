#pragma once

#include "tokenizer/json_field.h"
#include "tokenizer/tokenizer_file.h"

namespace lockstep {

// Reads `pre_tokenizer` of a tokenizer.json into the stages of a TokenizerFile.
class PreTokenizerReader {
 public:
  explicit PreTokenizerReader(TokenizerFile& file) : file_(file) {}
  // Throws kInput, naming the field, for a component or option that is unknown, and when there is
  // not exactly one ByteLevel.
  void read(const JsonField& pre_tokenizer);

 private:
  void read_component(const JsonField& component, int depth);
  void read_byte_level(const JsonField& component);
  [[nodiscard]] static SplitStage read_split(const JsonField& component);
  void add(SplitStage stage);

  TokenizerFile& file_;
  bool byte_level_seen_ = false;
};

}  // namespace lockstep
