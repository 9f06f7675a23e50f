#pragma once

#include <cstdint>

#include "model/activations.h"
#include "model/config.h"
#include "model/rope_table.h"
#include "model/weights.h"
#include "ops/accumulate.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep {

// What every block of a pass reads. Borrows all of it.
struct BlockPass {
  CpuStream& stream;
  const ModelConfig& config;
  const RopeTable& rope;
  View segments;  // (B, T) i32, or absent
  Remat remat = Remat::kNone;
  ops::Accumulate gradients = ops::Accumulate::kOverwrite;  // of the weights
};

// Where a block keeps keys and values of earlier positions.
struct CachedKeys {
  View k;                  // (B, S, P), normed and rotated
  View v;                  // (B, S, P)
  std::int64_t first = 0;  // positions already there; the pass writes [first, first + T)
};

// One block of Olmo 3 with its reordered norm, where x is the residual stream:
//   h = x + RMSNorm(attention(x));   y = h + RMSNorm(mlp(h))
// `y` may share memory with a.x in a forward-only pass. With `cache`, queries also see the
// positions before theirs.
void block_forward(const BlockPass& pass, std::int64_t layer, const BlockWeights& w,
                   const BlockActivations& a, const Residual& y, const CachedKeys* cache);

// g.residual: in, the gradient of y; out, the gradient of x. `dw`: the block's gradients.
// Destroys a.gate_up.
void block_backward(const BlockPass& pass, std::int64_t layer, const BlockWeights& w,
                    const BlockActivations& a, const BackwardWorkspace& g, const BlockTensors& dw);

}  // namespace lockstep
