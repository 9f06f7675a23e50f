#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

// A permutation of [0, n) keyed by (seed, epoch), any position at once in O(1) memory: a balanced
// Feistel network (Luby and Rackoff 1988) on 2h bits, the smallest even width with 4^h >= n and
// h >= 4, walked along its cycle until the value falls below n (Black and Rogaway 2002, "Ciphers
// with arbitrary finite domains"): a bijection for every n by construction, below 4 network
// passes on average for n > 64. Immutable, thread-safe.
class FeistelPermutation {
 public:
  // 1 <= n <= 2^62.
  FeistelPermutation(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch);

  // position < n.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const;

 private:
  static constexpr int kRounds = 10;
  std::uint64_t n_;
  unsigned half_bits_;
  std::array<std::uint64_t, kRounds> keys_{};
};

}  // namespace lockstep
