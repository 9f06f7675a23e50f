#include "data/shuffle.h"

#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "data/pcg64.h"

namespace lockstep {

namespace {

constexpr std::size_t kBlock =
    128;  // swaps in flight: enough to hide memory latency, well inside L1

// The draws of a shuffle of n elements, for i = n-1 downwards, in blocks.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint32_t n) : random_(seed), next_(n - 1) {}

  // Up to kBlock further partners j for i = next_, next_-1, ...; 0 when i has reached 0.
  std::size_t fill(std::array<std::uint32_t, kBlock + 1>& partners, std::uint32_t* order) {
    std::size_t count = 0;
    while (count < kBlock && next_ > 0) {
      // i keeps its mask until it falls to mask/2.
      const std::uint32_t mask = ~std::uint32_t{0} >> std::countl_zero(next_);
      const std::size_t until = std::min<std::size_t>(kBlock, count + next_ - (mask >> 1U));
      fill_same_mask(partners, order, mask, count, until);
      count = until;
    }
    return count;
  }

 private:
  // Rejection without a branch on the random value: a refused draw is overwritten by the next.
  void fill_same_mask(std::array<std::uint32_t, kBlock + 1>& partners, std::uint32_t* order,
                      std::uint32_t mask, std::size_t count, std::size_t until) {
    if (has_high_) {
      has_high_ = false;
      count += accept(partners, order, high_ & mask, count);
    }
    while (count < until) {
      const std::uint64_t word = random_.u64();
      high_ = static_cast<std::uint32_t>(word >> 32U);
      count += accept(partners, order, static_cast<std::uint32_t>(word) & mask, count);
      if (count == until) {
        has_high_ = true;
        return;
      }
      count += accept(partners, order, high_ & mask, count);
    }
  }

  std::size_t accept(std::array<std::uint32_t, kBlock + 1>& partners, std::uint32_t* order,
                     std::uint32_t draw, std::size_t count) {
    partners[count] = draw;
    __builtin_prefetch(order + draw, 1);
    const std::uint32_t taken = draw <= next_ ? 1U : 0U;
    next_ -= taken;
    return taken;
  }

  Pcg64 random_;
  std::uint32_t next_;  // the i that the next accepted draw is for
  std::uint32_t high_ = 0;
  bool has_high_ = false;
};

}  // namespace

void numpy_shuffled_arange(std::uint64_t seed, std::span<std::uint32_t> order) {
  LOCKSTEP_CHECK(order.size() <= 0xffffffffU, "a shuffle of ", order.size(), " elements");
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  if (order.size() < 2) return;
  Draws draws(seed, static_cast<std::uint32_t>(order.size()));
  std::array<std::uint32_t, kBlock + 1> blocks[2];
  std::uint32_t* data = order.data();
  std::size_t i = order.size() - 1;
  std::size_t current = draws.fill(blocks[0], data);
  for (std::size_t turn = 0; current > 0; ++turn) {
    const std::size_t ahead = draws.fill(blocks[(turn + 1) & 1U], data);
    for (std::size_t k = 0; k < current; ++k) std::swap(data[i - k], data[blocks[turn & 1U][k]]);
    i -= current;
    current = ahead;
  }
}

}  // namespace lockstep
