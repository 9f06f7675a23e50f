#pragma once

#include <cstdint>
#include <span>

namespace lockstep {

// Fills `order` with 0..n-1 and shuffles it exactly as NumPy's
// Generator(PCG64(seed)).shuffle(arange(n, dtype=uint32)): for i = n-1..1 draw j <= i by masked
// rejection of 32-bit halves (low half first) and swap. n < 2^32. The draws do not depend on the
// array, so they run a block ahead of the swaps and prefetch what those will touch.
void numpy_shuffled_arange(std::uint64_t seed, std::span<std::uint32_t> order);

}  // namespace lockstep
