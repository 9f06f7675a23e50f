#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pre_tokenizer.h"

namespace lockstep {

// A byte-level BPE tokenizer.json of Hugging Face `tokenizers`, read and checked.
struct TokenizerFile {
  std::vector<AddedToken> added;
  bool nfc = false;
  std::vector<SplitStage> splits_before;
  ByteLevelStage byte_level;
  std::vector<SplitStage> splits_after;

  std::vector<std::string> tokens;  // by id, as bytes; of added tokens their content. Empty: a hole
  std::vector<std::uint32_t> model_ids;  // those of the model's vocabulary, ascending
  std::vector<BpeMerge> merges;
  BytePairEncoder::Options bpe;
  bool ignore_merges = false;  // a piece that is in the vocabulary is that token

  // What a TemplateProcessing puts around a text when it is asked to.
  std::vector<std::uint32_t> prefix;
  std::vector<std::uint32_t> suffix;

  // All but vocabulary, merges and added tokens, in one fixed form; for the fingerprint.
  std::string settings;
};

// `name` is the file's name, for errors. Throws kInput naming the field for what is malformed,
// contradictory or not supported: an unknown component is never replaced by a default.
[[nodiscard]] TokenizerFile parse_tokenizer_file(std::string_view json, std::string_view name);

}  // namespace lockstep
