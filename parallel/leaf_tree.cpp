#include "parallel/leaf_tree.h"

#include <algorithm>
#include <bit>

#include "ops/elementwise.h"
#include "ops/run.h"

namespace lockstep {

std::int64_t LeafTree::buffers(std::int64_t leaves) {
  // The counter holds popcount(i) partial sums while leaf i is being computed, which needs memory
  // of its own only if it is the first of a pair.
  int most = 1;
  for (std::int64_t i = 0; i < leaves; i += 2) {
    most = std::max(most, std::popcount(static_cast<std::uint64_t>(i)) + 1);
  }
  return most;
}

LeafTree::LeafTree(std::int64_t leaves, std::int64_t floats, Arena& arena) : leaves_(leaves) {
  LOCKSTEP_CHECK(leaves >= 1, leaves, " leaves");
  for (std::int64_t i = 0; i < buffers(leaves); ++i) {
    memory_.push_back(arena.take(DType::kF32, {floats}));
  }
  counts_.reserve(memory_.size());
}

LeafTree::Next LeafTree::next() const {
  LOCKSTEP_CHECK(added_ < leaves_, "leaf ", added_, " of ", leaves_);
  if (pairs()) return {memory_[counts_.size() - 1], ops::Accumulate::kAdd};
  return {memory_[counts_.size()], ops::Accumulate::kOverwrite};
}

void LeafTree::add(CpuStream& stream) {
  LOCKSTEP_CHECK(added_ < leaves_, "leaf ", added_, " of ", leaves_);
  if (pairs()) {
    ++counts_.back();
  } else {
    counts_.push_back(1);
  }
  ++added_;
  while (counts_.size() >= 2 && counts_.back() == counts_[counts_.size() - 2]) merge_top(stream);
}

View LeafTree::finish(CpuStream& stream) {
  LOCKSTEP_CHECK(added_ == leaves_, added_, " of ", leaves_, " leaves");
  while (counts_.size() >= 2) merge_top(stream);
  counts_.clear();
  added_ = 0;
  return memory_.front();
}

void LeafTree::merge_top(CpuStream& stream) {
  const View& earlier = memory_[counts_.size() - 2];
  const View& later = memory_[counts_.size() - 1];
  ops::run(stream, ops::Add{.y = earlier, .a = earlier, .b = later});
  const std::int64_t count = counts_.back();
  counts_.pop_back();
  counts_.back() += count;
}

}  // namespace lockstep
