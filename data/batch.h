#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// The target of a position that takes no part in the loss.
inline constexpr std::int32_t kNoTarget = -1;

// One microbatch of b instances of T tokens; arrays are [b, T] in row order.
struct LeafData {
  std::vector<std::int32_t> tokens;
  // Token t+1 of the same instance; kNoTarget at the last position, before and in padding, and all
  // through a filtered instance.
  std::vector<std::int32_t> targets;
  // The document of each position, from 0 in each instance: an end-of-text token is the last of its
  // document, padding is apart. Empty without document masking.
  std::vector<std::int32_t> segments;
  std::vector<std::uint64_t> instances;  // [b] global ids
  std::vector<std::uint8_t> filtered;    // [b] 1: masked out by the instance filter
  std::uint64_t real_tokens = 0;         // all but padding
  std::uint64_t target_count = 0;
  std::string row_digests;  // 32 hexadecimal digits a row
};

// The leaves of one step that this process reads.
struct Batch {
  std::uint64_t step = 0;   // k of StepPlan
  std::uint64_t epoch = 0;  // from 1
  std::uint64_t first_leaf = 0;
  std::vector<LeafData> leaves;
  std::vector<std::uint64_t> tokens_by_label;  // real tokens, by InstanceSource::labels()
  // batch_digest of all leaves; empty when this process reads only some of them.
  std::string digest;

  [[nodiscard]] std::uint64_t target_count() const {
    std::uint64_t sum = 0;
    for (const LeafData& leaf : leaves) sum += leaf.target_count;
    return sum;
  }
  [[nodiscard]] std::uint64_t real_tokens() const {
    std::uint64_t sum = 0;
    for (const LeafData& leaf : leaves) sum += leaf.real_tokens;
    return sum;
  }
};

// The digest of a step: over the instance ids, tokens, targets and segments of its rows in order.
// `row_digests` is the leaves' joined in order; how rows are grouped into leaves or spread over
// ranks does not matter. 32 hexadecimal digits.
[[nodiscard]] std::string batch_digest(const std::string& row_digests);

}  // namespace lockstep
