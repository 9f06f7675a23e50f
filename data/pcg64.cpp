#include "data/pcg64.h"

namespace lockstep {

namespace {

// The two hash steps of SeedSequence; the constants are NumPy's.
class HashMix {
 public:
  HashMix(std::uint32_t start, std::uint32_t multiplier)
      : constant_(start), multiplier_(multiplier) {}

  std::uint32_t operator()(std::uint32_t value) {
    value ^= constant_;
    constant_ *= multiplier_;
    value *= constant_;
    return value ^ (value >> 16U);
  }

 private:
  std::uint32_t constant_;
  std::uint32_t multiplier_;
};

std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
  const std::uint32_t value = 0xca01f9ddU * x - 0x4973f715U * y;
  return value ^ (value >> 16U);
}

}  // namespace

std::array<std::uint32_t, 8> seed_sequence_words(std::uint64_t seed) {
  // A seed of 64 bits has at most two words, fewer than the pool: the rest are filled with zeros.
  const std::array<std::uint32_t, 4> words = {static_cast<std::uint32_t>(seed),
                                              static_cast<std::uint32_t>(seed >> 32U), 0, 0};
  std::array<std::uint32_t, 4> pool{};
  HashMix absorb(0x43b0d7e5U, 0x931e8875U);
  for (std::size_t i = 0; i < 4; ++i) pool[i] = absorb(words[i]);
  for (std::size_t from = 0; from < 4; ++from) {
    for (std::size_t to = 0; to < 4; ++to) {
      if (from != to) pool[to] = mix(pool[to], absorb(pool[from]));
    }
  }
  HashMix squeeze(0x8b51f9ddU, 0x58f38dedU);
  std::array<std::uint32_t, 8> out{};
  for (std::size_t i = 0; i < 8; ++i) out[i] = squeeze(pool[i % 4]);
  return out;
}

Pcg64::Pcg64(std::uint64_t seed) {
  const auto words = seed_sequence_words(seed);
  std::array<std::uint64_t, 4> longs{};
  for (std::size_t i = 0; i < 4; ++i) {
    longs[i] = (static_cast<std::uint64_t>(words[2 * i + 1]) << 32U) | words[2 * i];
  }
  const Uint128 start = (static_cast<Uint128>(longs[0]) << 64U) | longs[1];
  const Uint128 stream = (static_cast<Uint128>(longs[2]) << 64U) | longs[3];
  increment_ = (stream << 1U) | 1U;
  state_ = (increment_ + start) * kMultiplier + increment_;
}

}  // namespace lockstep
