#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "data/mix.h"
#include "data/token_file.h"

namespace lockstep {

// What the token files of one label hold.
struct LabelStats {
  std::string label;
  std::uint64_t files = 0;
  std::uint64_t tokens = 0;
  std::uint64_t documents = 0;
  // Tokens of a document, end-of-text included; 0 without documents. The median is the lower one.
  std::uint64_t shortest = 0;
  std::uint64_t median = 0;
  std::uint64_t longest = 0;
  std::uint32_t smallest_id = 0;
  std::uint32_t largest_id = 0;
  std::uint64_t distinct_ids = 0;
  // -sum p ln p over the ids' shares of all tokens, in nats: the loss of the best model that knows
  // nothing but how often each token occurs (Shannon 1948).
  double unigram_entropy = 0;
};

struct StatsSpec {
  std::string base_directory;
  TokenWidth width = TokenWidth::k32;
  std::uint32_t end_of_text = 0;
  Vocabulary vocabulary;
};

// By label, in order of first appearance. Reads every token, files in parallel; errors as TokenFile
// and document_spans.
[[nodiscard]] std::vector<LabelStats> mix_stats(FileSystem& fs, const StatsSpec& spec,
                                                std::span<const MixEntry> mix, ThreadPool& pool);

}  // namespace lockstep
