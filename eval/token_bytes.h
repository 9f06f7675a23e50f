#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace lockstep {

// Bytes of text that each id stands for: 0 for special tokens and for ids that are no token.
// Indexed by id, `size` long.
[[nodiscard]] std::vector<std::int32_t> bytes_of_tokens(const Tokenizer& tokenizer,
                                                        std::int64_t size);

}  // namespace lockstep
