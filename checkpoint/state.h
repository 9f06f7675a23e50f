#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "optim/skip_step.h"

namespace lockstep {

// All of a run's state that is not a tensor. With the weights and moments it determines every later
// step; nothing else does.
struct TrainingState {
  std::int64_t step = 0;        // optimiser steps done, skipped ones included
  std::int64_t adam_step = 0;   // of these, taken ones: the t of Adam's bias correction
  std::int64_t tokens = 0;      // tokens seen
  std::int64_t next_batch = 0;  // k of the step plan for the next step
  SkipStep skip;                // the skip rule's window and counts

  // What the bits of the next steps rest on besides the recipe; a resume compares them.
  std::string data_fingerprint;
  std::string precision;   // "fp32", "bf16"
  std::string kernel_set;  // "avx512_bf16/1": instruction set / version of the kernels' numerics
};

// JSON with every double also as the hexadecimal of its bits, which is what is read back.
[[nodiscard]] std::string state_to_json(const TrainingState& state);
// Throws kData naming `what` and the field for anything missing, unknown or of the wrong type.
[[nodiscard]] TrainingState state_from_json(std::string_view text, std::string_view what);

}  // namespace lockstep
