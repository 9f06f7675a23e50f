#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep {

// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): a pure
// function of key and counter, so that any rank or thread makes any slice of a stream.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 2> key,
                                                      std::array<std::uint32_t, 4> counter);

// A stream of numbers keyed by (seed, name); element i is a pure function of them. Thread-safe.
class CounterRng {
 public:
  CounterRng(std::uint64_t seed, std::string_view name);

  [[nodiscard]] std::uint64_t u64(std::uint64_t index) const;
  // Uniform in (0, 1), 53 bits, never 0 or 1.
  [[nodiscard]] double uniform(std::uint64_t index) const;
  // Normal(mean 0, std 1) cut at +-cut, by inversion of the distribution function.
  [[nodiscard]] double truncated_normal(std::uint64_t index, double cut) const;
  // out[i] = truncated_normal(first + i, cut), the same bits, several times as fast.
  void truncated_normals(std::uint64_t first, double cut, std::span<double> out) const;

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t name_high_;
};

// The inverse of the standard normal distribution function, relative error below 1e-14 (Wichura
// 1988, algorithm AS 241, PPND16). p in (0, 1).
[[nodiscard]] double normal_quantile(double p);

}  // namespace lockstep
