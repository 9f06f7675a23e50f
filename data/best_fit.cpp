#include "data/best_fit.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "base/error.h"

namespace lockstep {

std::vector<std::vector<std::uint32_t>> pack_best_fit(std::span<const std::uint32_t> lengths,
                                                      std::uint32_t capacity) {
  std::vector<std::uint32_t> items(lengths.size());
  std::iota(items.begin(), items.end(), 0U);
  std::stable_sort(items.begin(), items.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<std::uint32_t>> bins;
  std::map<std::uint32_t, std::deque<std::size_t>> bins_with_space;
  for (const std::uint32_t item : items) {
    const std::uint32_t length = lengths[item];
    LOCKSTEP_CHECK(length >= 1 && length <= capacity, "length ", length, " of ", capacity);
    std::size_t bin = bins.size();
    std::uint32_t space = capacity;
    const auto best = bins_with_space.lower_bound(length);
    if (best == bins_with_space.end()) {
      bins.emplace_back();
    } else {
      space = best->first;
      bin = best->second.front();
      best->second.pop_front();
      if (best->second.empty()) bins_with_space.erase(best);
    }
    bins[bin].push_back(item);
    if (space > length) bins_with_space[space - length].push_back(bin);
  }
  return bins;
}

}  // namespace lockstep
