#pragma once

#include <cstdint>
#include <vector>

#include "ops/accumulate.h"
#include "tensor/buffer.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep {

// The canonical sum of a step's leaf gradients: a balanced binary tree over the leaves in order,
// in fp32, kept as a binary counter of partial sums. The tree is a function of the number of leaves
// alone, so a rank that owns an aligned power-of-two run of leaves computes exactly one node of it.
// With a number of leaves that is no power of two, the partial sums left at the end are added from
// the smallest (the last leaves) to the largest.
//
// Every second leaf is added to the one before it while it is computed, without a pass of its own.
class LeafTree {
 public:
  struct Next {
    View gradient;  // f32 [floats]
    ops::Accumulate accumulate;
  };

  // Takes buffers(leaves) gradients of `floats` elements from the arena (which may only measure).
  LeafTree(std::int64_t leaves, std::int64_t floats, Arena& arena);

  // How many gradients are held at once at most.
  [[nodiscard]] static std::int64_t buffers(std::int64_t leaves);

  // Where the next leaf's gradient is to be written or added. Stays the same until add().
  [[nodiscard]] Next next() const;
  // The gradient in next() is complete: it is part of the tree.
  void add(CpuStream& stream);
  // The sum of all leaves, valid until the next add(); the tree is empty again. kBug unless exactly
  // `leaves` were added.
  [[nodiscard]] View finish(CpuStream& stream);

 private:
  [[nodiscard]] bool pairs() const { return added_ % 2 == 1; }
  void merge_top(CpuStream& stream);

  std::int64_t leaves_;
  std::int64_t added_ = 0;
  std::vector<View> memory_;          // [i] holds the partial sum i of the counter
  std::vector<std::int64_t> counts_;  // leaves in each partial sum, largest first
};

}  // namespace lockstep
