#include "parallel/leaf_tree.h"

#include <algorithm>
#include <bit>

#include "ops/elementwise.h"
#include "ops/run.h"

namespace lockstep {

std::int64_t LeafTree::buffers(std::int64_t leaves) {
  // The counter holds popcount(i) partial sums while leaf i is being computed.
  int most = 0;
  for (std::int64_t i = 0; i < leaves; ++i) {
    most = std::max(most, std::popcount(static_cast<std::uint64_t>(i)));
  }
  return most + 1;
}

LeafTree::LeafTree(std::int64_t leaves, std::int64_t floats, Arena& arena) : leaves_(leaves) {
  LOCKSTEP_CHECK(leaves >= 1, leaves, " leaves");
  for (std::int64_t i = 0; i < buffers(leaves); ++i) {
    memory_.push_back(arena.take(DType::kF32, {floats}));
  }
  counts_.reserve(memory_.size());
}

View LeafTree::next() const {
  LOCKSTEP_CHECK(added_ < leaves_, "leaf ", added_, " of ", leaves_);
  return memory_[counts_.size()];
}

void LeafTree::add(CpuStream& stream) {
  LOCKSTEP_CHECK(added_ < leaves_, "leaf ", added_, " of ", leaves_);
  ++added_;
  counts_.push_back(1);
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
