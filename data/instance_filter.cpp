#include "data/instance_filter.h"

#include <algorithm>

namespace lockstep {

namespace {

constexpr std::size_t kMaxPeriod = 13;
constexpr std::size_t kRepeats = 32;

}  // namespace

bool has_periodic_span(std::span<const std::uint32_t> tokens) {
  const std::size_t longest = std::min(kMaxPeriod, tokens.size() / 3);
  for (std::size_t period = 1; period <= longest; ++period) {
    const std::size_t wanted = (kRepeats - 1) * period;
    // A run of `wanted` equalities covers one of the positions last, last + wanted, ...: only there
    // is anything looked at, and then the run around it is measured. O(n) in all.
    for (std::size_t at = period + wanted - 1; at < tokens.size();) {
      std::size_t begin = at + 1;
      while (begin > period && tokens[begin - 1] == tokens[begin - 1 - period] &&
             at + 1 - begin < wanted) {
        --begin;
      }
      if (at + 1 - begin >= wanted) return true;
      // The equality before `begin` fails, so the next run that counts starts at `begin`.
      at = begin + wanted - 1;
    }
  }
  return false;
}

}  // namespace lockstep
