#include "parallel/leaf_tree.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

// The definition, recursively: the largest power of two below n, then the rest.
float tree_sum(const std::vector<float>& leaves, std::size_t begin, std::size_t count) {
  if (count == 1) return leaves[begin];
  std::size_t left = 1;
  while (2 * left < count) left *= 2;
  return tree_sum(leaves, begin, left) + tree_sum(leaves, begin + left, count - left);
}

float leaf_value(std::size_t leaf) { return 1.0F / static_cast<float>(3 * leaf + 1); }

TEST(LeafTree, IsTheBalancedTreeForAnyNumberOfLeaves) {
  CpuStream stream(2);
  for (std::size_t leaves = 1; leaves <= 33; ++leaves) {
    const auto count = static_cast<std::int64_t>(leaves);
    Arena measure;
    static_cast<void>(LeafTree(count, 5, measure));
    Buffer memory(measure.used(), "test");
    Arena arena(memory);
    LeafTree tree(count, 5, arena);
    std::vector<float> values(leaves);
    for (std::size_t i = 0; i < leaves; ++i) values[i] = leaf_value(i);
    for (int step = 0; step < 2; ++step) {  // a second step starts afresh
      for (std::size_t i = 0; i < leaves; ++i) {
        const auto [view, accumulate] = tree.next();
        EXPECT_EQ(accumulate == ops::Accumulate::kAdd, i % 2 == 1);
        float* gradient = view.data<float>();
        for (int j = 0; j < 5; ++j) gradient[j] = i % 2 == 1 ? gradient[j] + values[i] : values[i];
        tree.add(stream);
      }
      const View sum = tree.finish(stream);
      EXPECT_EQ(sum.data<float>()[4], tree_sum(values, 0, leaves)) << leaves;
    }
  }
}

// What many ranks rest on: an aligned power-of-two run of leaves is one node of the whole tree.
TEST(LeafTree, APowerOfTwoRunIsANodeOfTheWholeTree) {
  std::vector<float> values(16);
  for (std::size_t i = 0; i < 16; ++i) values[i] = leaf_value(i);
  for (const std::size_t ranks : {2U, 4U, 8U, 16U}) {
    std::vector<float> sums;
    for (std::size_t r = 0; r < ranks; ++r) {
      sums.push_back(tree_sum(values, r * (16 / ranks), 16 / ranks));
    }
    EXPECT_EQ(tree_sum(sums, 0, ranks), tree_sum(values, 0, 16));
  }
}

TEST(LeafTree, HoldsLogarithmicallyManyGradients) {
  EXPECT_EQ(LeafTree::buffers(1), 1);
  EXPECT_EQ(LeafTree::buffers(2), 1);
  EXPECT_EQ(LeafTree::buffers(3), 2);
  EXPECT_EQ(LeafTree::buffers(8), 3);
  EXPECT_EQ(LeafTree::buffers(256), 8);
}

TEST(LeafTree, RefusesTooFewAndTooManyLeaves) {
  CpuStream stream(1);
  Buffer memory(1024, "test");
  Arena arena(memory);
  LeafTree tree(2, 1, arena);
  tree.add(stream);
  EXPECT_THROW(static_cast<void>(tree.finish(stream)), Error);
  tree.add(stream);
  EXPECT_THROW(tree.add(stream), Error);
  EXPECT_THROW(static_cast<void>(tree.next()), Error);
}

}  // namespace
}  // namespace lockstep
