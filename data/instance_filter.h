#pragma once

#include <cstdint>
#include <span>

namespace lockstep {

// True when the instance holds a span that repeats itself with a period of 1..13 tokens (at most a
// third of the instance) 32 times or more. With run = the number of consecutive t with
// x[t] == x[t - p], the span is run + p tokens, so 32 repeats are run >= 31 p. Same verdicts as
// OLMo-core's data/utils.py find_periodic_sequences(max_period=13) with times >= 32.
[[nodiscard]] bool has_periodic_span(std::span<const std::uint32_t> tokens);

}  // namespace lockstep
