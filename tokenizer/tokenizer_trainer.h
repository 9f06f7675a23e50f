#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tokenizer/word_counts.h"

namespace lockstep {

class ThreadPool;

struct TokenizerTraining {
  // All ids: special tokens, 256 bytes, learned tokens. At least 256 + special tokens; fewer come
  // out when the text has no more pairs.
  std::uint32_t vocab_size = 8192;
  // Get the first ids, in this order. Different, not empty, none a single character of the
  // alphabet.
  std::vector<std::string> special_tokens = {"<|endoftext|>", "<|pad|>"};
  // What cuts text into words; no merge crosses their borders. Empty: cl100k_base's.
  std::string pattern = {};
  // A pair that occurs less often is not merged.
  std::uint64_t min_frequency = 2;
  // Told what is going on, by the calling thread: bytes counted, or tokens learned.
  std::function<void(std::uint64_t bytes_counted, std::uint32_t tokens_learned)> progress = {};
};

// Trains a byte-level BPE tokenizer and returns its Hugging Face tokenizer.json. The ids are:
// special tokens, then the bytes in the order of their byte-level characters, then the learned
// tokens in the order of their merges. A pure function of the documents as a multiset and of the
// settings: neither the order of documents nor the number of threads matters. Memory as
// count_words. Throws kConfig for settings, kInput for a document that is not well-formed UTF-8.
[[nodiscard]] std::string train_tokenizer(const DocumentSource& documents,
                                          const TokenizerTraining& training, ThreadPool& pool);

}  // namespace lockstep
