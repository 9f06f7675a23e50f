#pragma once

#include <cstdint>

#include "model/activations.h"
#include "model/config.h"
#include "model/numerics.h"
#include "ops/accumulate.h"
#include "tensor/isa.h"

namespace lockstep {

// The scratch memory that a stream of `threads` threads holds after a training pass over one leaf
// without segments, its gradients written or added to others: the most that any op of the pass
// takes.
[[nodiscard]] std::int64_t training_scratch_bytes(const ModelConfig& config, const LeafShape& shape,
                                                  Precision precision, ops::Accumulate accumulate,
                                                  Isa isa, int threads);

}  // namespace lockstep
