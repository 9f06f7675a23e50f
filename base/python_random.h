#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

// Python's random.Random(seed), as far as others' data and evaluation code draws with it: MT19937
// seeded by init_by_array of one word (Matsumoto & Nishimura 1998 and their mt19937ar.c of 2002),
// integers below n by rejection of n.bit_length() bits (CPython 3.2 and later, Lib/random.py).
// Draws follow one another; not to be shared between threads.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed);

  // What shuffle() makes of list(range(n)). OLMo-core orders the files of packed instances with it.
  // kBug when n is 2^32 or more.
  [[nodiscard]] std::vector<std::size_t> shuffled_range(std::size_t n);

  // The indices that sample(range(population), count) gives, in its order. lm-evaluation-harness
  // draws its few-shot examples with it. kBug when count is over the population.
  [[nodiscard]] std::vector<std::uint32_t> sample(std::uint32_t population, std::uint32_t count);

 private:
  static constexpr std::uint32_t kWords = 624;
  [[nodiscard]] std::uint32_t next();
  [[nodiscard]] std::uint32_t below(std::uint32_t bound);  // uniform in [0, bound), bound >= 1
  void refill();

  std::array<std::uint32_t, kWords> state_{};
  std::uint32_t at_ = kWords;
};

}  // namespace lockstep
