#include "data/python_random.h"

#include <bit>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace lockstep {

namespace {

class MersenneTwister {
 public:
  // init_by_array with the one key `seed`.
  explicit MersenneTwister(std::uint32_t seed) {
    state_[0] = 19650218U;
    for (std::uint32_t i = 1; i < kWords; ++i) {
      state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30U)) + i;
    }
    std::uint32_t i = 1;
    for (std::uint32_t k = 0; k < kWords; ++k) {
      state_[i] = (state_[i] ^ (mixed(i) * 1664525U)) + seed;
      advance(i);
    }
    for (std::uint32_t k = 0; k + 1 < kWords; ++k) {
      state_[i] = (state_[i] ^ (mixed(i) * 1566083941U)) - i;
      advance(i);
    }
    state_[0] = 0x80000000U;
  }

  std::uint32_t next() {
    if (at_ == kWords) refill();
    std::uint32_t y = state_[at_++];
    y ^= y >> 11U;
    y ^= (y << 7U) & 0x9d2c5680U;
    y ^= (y << 15U) & 0xefc60000U;
    return y ^ (y >> 18U);
  }

  // Uniform in [0, n), 1 <= n < 2^32.
  std::uint32_t below(std::uint32_t n) {
    const auto shift = static_cast<unsigned>(std::countl_zero(n));
    std::uint32_t value = next() >> shift;
    while (value >= n) value = next() >> shift;
    return value;
  }

 private:
  static constexpr std::uint32_t kWords = 624;
  static constexpr std::uint32_t kMiddle = 397;

  [[nodiscard]] std::uint32_t mixed(std::uint32_t i) const {
    return state_[i - 1] ^ (state_[i - 1] >> 30U);
  }
  void advance(std::uint32_t& i) {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  }
  void refill() {
    for (std::uint32_t i = 0; i < kWords; ++i) {
      const std::uint32_t y = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7fffffffU);
      state_[i] = state_[(i + kMiddle) % kWords] ^ (y >> 1U) ^ ((y & 1U) != 0 ? 0x9908b0dfU : 0U);
    }
    at_ = 0;
  }

  std::array<std::uint32_t, kWords> state_{};
  std::uint32_t at_ = kWords;
};

}  // namespace

std::vector<std::size_t> python_shuffled_range(std::uint32_t seed, std::size_t n) {
  LOCKSTEP_CHECK(n <= 0xffffffffU, "n = ", n);
  std::vector<std::size_t> out(n);
  std::iota(out.begin(), out.end(), std::size_t{0});
  MersenneTwister random(seed);
  for (std::size_t i = n; i-- > 1;) {
    std::swap(out[i], out[random.below(static_cast<std::uint32_t>(i + 1))]);
  }
  return out;
}

}  // namespace lockstep
