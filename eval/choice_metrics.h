#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/loglikelihood.h"

namespace lockstep {

// The choice that each rule takes for the answer; the lowest index among equals.
struct Picks {
  std::size_t acc = 0;        // the largest log-probability
  std::size_t acc_norm = 0;   // by characters (code points) of the choice, as the harness does it
  std::size_t acc_bytes = 0;  // by its bytes in UTF-8
};
// `choices` without the delimiter before them; as many as scores, at least one.
[[nodiscard]] Picks pick(std::span<const Score> scores, std::span<const std::string> choices);

// A share of right answers. `error` is the sample standard deviation over the square root of n; NaN
// where n is below 2, as `value` is at 0.
struct Share {
  double value = 0;
  double error = 0;
};

// Right answers by rule.
struct ChoiceCounts {
  std::int64_t n = 0;
  std::int64_t acc = 0;
  std::int64_t acc_norm = 0;
  std::int64_t acc_bytes = 0;
  void add(const Picks& picks, std::size_t gold);
};

[[nodiscard]] Share share_of(std::int64_t right, std::int64_t n);

// A group: the mean weighted by size and the pooled standard error
// sqrt(sum (n_i - 1) n_i se_i^2 / (sum n_i - k) / sum n_i). `right` picks the rule.
[[nodiscard]] Share pooled(std::span<const ChoiceCounts> parts, std::int64_t ChoiceCounts::*right);

}  // namespace lockstep
