#pragma once

#include <span>

namespace lockstep {

// How far two rows of logits are from each other.
struct LogitDistance {
  double max_abs = 0;
  double kl = 0;          // KL(reference || ours), nats
  bool same_top = false;  // the same most likely id (the lowest among equals)
  double top5 = 0;        // what the two sets of five most likely ids have in common, over five
};

// Both spans as long as the vocabulary; of less than five ids, all count for `top5`. Softmaxes and
// sums are fp64, in the order of the ids. A NaN in either makes max_abs or kl NaN, never small.
[[nodiscard]] LogitDistance logit_distance(std::span<const float> reference,
                                           std::span<const float> ours);

}  // namespace lockstep
