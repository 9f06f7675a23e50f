#pragma once

#include <string>

#include "eval/parity.h"
#include "io/file.h"

namespace lockstep::cli {

// A safetensors file with what another implementation computed: input_ids [B,T], logits [B,P,V] of
// the last P <= T positions, and optionally segment_ids [B,T], target_mask [B,T-1] (0: masked),
// grad.NAME by parameter and grad_norm. Integers may be I64 or I32. Tensor bytes are read when
// asked for. Throws kInput and kData naming file and tensor. `fs` must outlive the result.
[[nodiscard]] Reference open_golden_file(FileSystem& fs, const std::string& path);

}  // namespace lockstep::cli
