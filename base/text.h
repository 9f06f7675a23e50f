#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The candidate with the smallest edit distance to `name`; empty when none is nearer than half of
// the name's length.
[[nodiscard]] std::string nearest_name(std::string_view name,
                                       std::span<const std::string> candidates);

// Text from outside made safe for one line of a terminal or log: control characters and invalid
// UTF-8 as \xNN, newline as \n; cut at `limit` bytes with "...".
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 200);

// "1.5 GiB"; "12.3M" (powers of 1000); "1h02m", "3m05s", "12.3s".
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);
[[nodiscard]] std::string human_count(double count);
[[nodiscard]] std::string human_seconds(double seconds);

// "1,413,814".
[[nodiscard]] std::string with_commas(std::int64_t value);

// True for well-formed UTF-8 (no surrogates, nothing past U+10FFFF, shortest forms).
[[nodiscard]] bool is_valid_utf8(std::string_view text);

[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

}  // namespace lockstep
