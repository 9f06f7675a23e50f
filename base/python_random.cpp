#include "base/python_random.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace lockstep {

PythonRandom::PythonRandom(std::uint32_t seed) {
  state_[0] = 19650218U;
  for (std::uint32_t i = 1; i < kWords; ++i) {
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30U)) + i;
  }
  std::uint32_t i = 1;
  const auto mixed = [&](std::uint32_t factor) {
    return state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30U)) * factor);
  };
  const auto advance = [&] {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  };
  for (std::uint32_t k = 0; k < kWords; ++k) {
    state_[i] = mixed(1664525U) + seed;
    advance();
  }
  for (std::uint32_t k = 1; k < kWords; ++k) {
    state_[i] = mixed(1566083941U) - i;
    advance();
  }
  state_[0] = 0x80000000U;
}

void PythonRandom::refill() {
  constexpr std::uint32_t kMiddle = 397;
  for (std::uint32_t i = 0; i < kWords; ++i) {
    const std::uint32_t y = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7fffffffU);
    state_[i] = state_[(i + kMiddle) % kWords] ^ (y >> 1U) ^ ((y & 1U) != 0 ? 0x9908b0dfU : 0U);
  }
  at_ = 0;
}

std::uint32_t PythonRandom::next() {
  if (at_ == kWords) refill();
  std::uint32_t y = state_[at_++];
  y ^= y >> 11U;
  y ^= (y << 7U) & 0x9d2c5680U;
  y ^= (y << 15U) & 0xefc60000U;
  return y ^ (y >> 18U);
}

std::uint32_t PythonRandom::below(std::uint32_t bound) {
  const auto shift = static_cast<unsigned>(std::countl_zero(bound));
  std::uint32_t drawn = next() >> shift;
  while (drawn >= bound) drawn = next() >> shift;
  return drawn;
}

std::vector<std::size_t> PythonRandom::shuffled_range(std::size_t n) {
  LOCKSTEP_CHECK(n <= 0xffffffffU, "n = ", n);
  std::vector<std::size_t> out(n);
  std::iota(out.begin(), out.end(), std::size_t{0});
  for (std::size_t i = n; i-- > 1;) {
    std::swap(out[i], out[below(static_cast<std::uint32_t>(i + 1))]);
  }
  return out;
}

std::vector<std::uint32_t> PythonRandom::sample(std::uint32_t population, std::uint32_t count) {
  LOCKSTEP_CHECK(count <= population, count, " of ", population);
  // The size up to which Python copies the population: that of a set of `count` elements.
  std::uint64_t set_size = 21;
  if (count > 5) {
    std::uint64_t power = 1;
    while (power < std::uint64_t{3} * count) power *= 4;
    set_size += power;
  }
  std::vector<std::uint32_t> chosen;
  if (population <= set_size) {
    std::vector<std::uint32_t> pool(population);
    std::iota(pool.begin(), pool.end(), 0U);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t j = below(population - i);
      chosen.push_back(pool[j]);
      pool[j] = pool[population - i - 1];
    }
    return chosen;
  }
  while (chosen.size() < count) {
    const std::uint32_t j = below(population);
    if (std::find(chosen.begin(), chosen.end(), j) == chosen.end()) chosen.push_back(j);
  }
  return chosen;
}

}  // namespace lockstep
