#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

// Python's random.Random(seed).shuffle(list(range(n))): MT19937 seeded by init_by_array (Matsumoto
// and Nishimura 1998, 2002) and draws below n by rejection of n.bit_length() bits. seed < 2^32.
[[nodiscard]] std::vector<std::size_t> python_shuffled_range(std::uint32_t seed, std::size_t n);

}  // namespace lockstep
