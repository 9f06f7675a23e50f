#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

// Optimised best-fit-decreasing packing (Ding et al. 2024, "Fewer truncations improve language
// modeling"): items by length descending (equal ones in the order given), each put into the open
// bin with the smallest free space that holds it, of those into the one that has had that space the
// longest; a new bin is opened when none does. Returns the items (indices) of each bin, bins in the
// order opened, items in the order placed. 1 <= lengths <= capacity. O(n log n).
[[nodiscard]] std::vector<std::vector<std::uint32_t>> pack_best_fit(
    std::span<const std::uint32_t> lengths, std::uint32_t capacity);

}  // namespace lockstep
