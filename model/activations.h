#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/numerics.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace lockstep {

// B sequences of T positions; N = B T.
struct LeafShape {
  std::int64_t sequences = 0;
  std::int64_t positions = 0;
  [[nodiscard]] std::int64_t tokens() const { return sequences * positions; }
  friend bool operator==(const LeafShape&, const LeafShape&) = default;
};

enum class Pass { kForward, kTraining };

// The residual stream at one point of the model: kept in fp32, read by products in their dtype.
struct Residual {
  View exact;    // (N, D) f32
  View rounded;  // (N, D) bf16; absent in fp32 mode
  [[nodiscard]] const View& operand() const { return rounded.empty() ? exact : rounded; }
};

// What one block keeps from its forward for its backward. "P" is the dtype of products. What is
// recomputed, and everything in a forward-only pass, is shared by all blocks.
struct BlockActivations {
  Residual x;      // the block's input
  View qkv;        // (B, T, Q + 2 P) P
  View q;          // (B, T, Q) P, normed and rotated
  View q_rstd;     // (N) f32
  View k;          // (B, T, P) P, normed and rotated
  View k_rstd;     // (N) f32
  View context;    // (B, T, Q) P, attention's output
  View lse;        // (B, H, T) f32
  View attention;  // (N, D) P, projected
  View attention_rstd;
  Residual h;         // after attention
  View gate_up;       // (N, 2 F) P
  View product;       // (N, F) P, silu(gate) * up
  View feed_forward;  // (N, D) P
  View feed_forward_rstd;
};

// What backward needs beside these: gradients named after what they are gradients of.
struct BackwardWorkspace {
  View residual;  // (N, D) f32: of the residual stream, as it runs down
  View branch;    // (N, D) P: of a sub-block's output before its norm
  View product;   // (N, F) P
  View context;   // (B, T, Q) P
  View qkv;       // (B, T, Q + 2 P) P
};

// All memory of one pass over one leaf shape; owns nothing.
struct Activations {
  LeafShape shape;
  Pass pass = Pass::kForward;
  std::vector<BlockActivations> blocks;
  Residual out;                // of the last block
  View normed;                 // (N, D) P: the head's input
  View normed_rstd;            // (N) f32
  View token_ce;               // (N) f32
  View token_lse;              // (N) f32
  View token_argmax;           // (N) i32
  BackwardWorkspace gradient;  // training only
};

// Takes the memory of a pass from the arena, which may only measure. Rematerialisation policies:
// what a block recomputes in backward instead of keeping it.
//   none       nothing
//   mlp        gate_up, product
//   attention  qkv, q, k, context, lse
//   full       both, and attention and feed_forward: only x and h stay
[[nodiscard]] Activations lay_out_activations(const ModelConfig& config, const LeafShape& shape,
                                              Pass pass, Remat remat, Precision precision,
                                              Arena& arena);

// Bytes that lay_out_activations takes.
[[nodiscard]] std::int64_t activation_bytes(const ModelConfig& config, const LeafShape& shape,
                                            Pass pass, Remat remat, Precision precision);

}  // namespace lockstep
