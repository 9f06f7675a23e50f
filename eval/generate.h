#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/model.h"

namespace lockstep {

struct SamplingConfig {
  double temperature = 0;  // 0: always the most likely token (the lowest id among equals)
  double top_p = 1;        // sample from the fewest most likely tokens that hold this probability
  std::uint64_t seed = 0;  // the token of position i is a pure function of (seed, i) and the logits
  std::int64_t max_tokens = 64;
  bool stop_at_eos = true;
};

// The token that the rule picks. `logits` are those of the real ids; `forbidden` (-1: none) is
// never picked. Ties in probability go to the lower id. Throws kNumeric when a logit is NaN.
[[nodiscard]] std::int32_t sample_token(std::span<const float> logits, const SamplingConfig& config,
                                        std::int64_t position, std::int64_t forbidden);

// Continues a prompt of at least one token with a key-value cache: the prompt in pieces, then token
// by token. Padded rows and the pad token are never produced; eos ends the text and is not part of
// the result. `on_token` (may be empty) sees each token as it comes and returns false to stop.
[[nodiscard]] std::vector<std::int32_t> generate(Model& model, std::span<const std::int32_t> prompt,
                                                 const SamplingConfig& config,
                                                 const std::function<bool(std::int32_t)>& on_token);

}  // namespace lockstep
