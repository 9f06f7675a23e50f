#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tokenizer/bpe.h"
#include "tokenizer/word_counts.h"

namespace lockstep {

struct MergeTraining {
  std::array<std::uint32_t, 256> byte_ids;  // the token of each byte
  std::uint32_t first_id = 256;             // new tokens are numbered from here
  std::size_t max_new_tokens = 0;
  std::uint64_t min_frequency = 1;            // pairs that occur less often are not merged
  std::vector<std::string> forbidden;         // bytes that must not become a token
  std::function<void(std::size_t)> progress;  // told the number of new tokens, if given
};

// Learns merges (Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword
// Units", section 3.2, over bytes): again and again the pair of neighbouring tokens that occurs
// most often within words becomes a token. Of equally frequent pairs the one with the smaller left
// id, then the smaller right id, is taken. A pure function of its arguments, as Hugging Face's
// trainer has it: two pairs that spell the same bytes share a token, each with a merge of its own.
[[nodiscard]] std::vector<BpeMerge> learn_merges(std::span<const WordCount> words,
                                                 const MergeTraining& training);

}  // namespace lockstep
