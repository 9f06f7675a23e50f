#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace lockstep {

// Python's random.Random(seed) as far as sampling needs it: MT19937 (Matsumoto & Nishimura 1998)
// seeded by init_by_array, and the selection of random.sample(). lm-evaluation-harness draws its
// few-shot examples with it.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed);

  // The indices that sample(range(population), count) gives, in its order. kBug when count is over
  // the population.
  [[nodiscard]] std::vector<std::uint32_t> sample(std::uint32_t population, std::uint32_t count);

 private:
  static constexpr std::size_t kWords = 624;
  [[nodiscard]] std::uint32_t next();
  [[nodiscard]] std::uint32_t below(std::uint32_t bound);  // uniform, by rejection

  std::array<std::uint32_t, kWords> state_{};
  std::size_t at_ = kWords;
};

}  // namespace lockstep
