#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

// Eight 32-bit words out of a seed, as NumPy's SeedSequence(seed).generate_state(8): the seed's
// 32-bit words mixed into a pool of four (O'Neill's seed_seq design).
[[nodiscard]] std::array<std::uint32_t, 8> seed_sequence_words(std::uint64_t seed);

__extension__ typedef unsigned __int128 Uint128;

// PCG64 (XSL-RR 128/64; O'Neill 2014, "PCG: A family of simple fast space-efficient statistically
// good algorithms for random number generation"), seeded as NumPy's PCG64(seed). Its stream is bit
// for bit NumPy's. Not thread-safe.
class Pcg64 {
 public:
  explicit Pcg64(std::uint64_t seed);

  [[nodiscard]] std::uint64_t u64() {
    state_ = state_ * kMultiplier + increment_;
    const auto folded =
        static_cast<std::uint64_t>(state_ >> 64U) ^ static_cast<std::uint64_t>(state_);
    const auto turn = static_cast<unsigned>(state_ >> 122U);
    return (folded >> turn) | (folded << ((64U - turn) & 63U));
  }

 private:
  static constexpr Uint128 kMultiplier =
      (static_cast<Uint128>(0x2360ed051fc65da4U) << 64U) | 0x4385df649fccf645U;
  Uint128 state_ = 0;
  Uint128 increment_ = 0;
};

}  // namespace lockstep
