#include "data/feistel.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/rng.h"

namespace lockstep {

namespace {

// Half widths below this give round functions of too few bits to look random.
constexpr unsigned kMinHalfBits = 4;

// The finaliser of splitmix64 (Steele, Lea and Flood 2014; Stafford's mix 13).
std::uint64_t mix64(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

}  // namespace

FeistelPermutation::FeistelPermutation(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch)
    : n_(n) {
  LOCKSTEP_CHECK(n >= 1 && n <= std::uint64_t{1} << 62U, "n = ", n);
  const auto bits = static_cast<unsigned>(std::bit_width(n - 1));
  half_bits_ = std::max(kMinHalfBits, (bits + 1) / 2);
  const CounterRng random(seed, "data order feistel");
  for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = random.u64(epoch * kRounds + i);
}

std::uint64_t FeistelPermutation::operator()(std::uint64_t position) const {
  LOCKSTEP_CHECK(position < n_, "position ", position, " of ", n_);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t value = position;
  do {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & mask;
    for (const std::uint64_t key : keys_) {
      left ^= mix64(right + key) & mask;
      std::swap(left, right);
    }
    value = (left << half_bits_) | right;
  } while (value >= n_);
  return value;
}

}  // namespace lockstep
