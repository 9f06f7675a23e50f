#pragma once

#include <cstdint>

#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep::ops {

// Causal, optionally windowed and document-masked attention with grouped keys and values (Vaswani
// et al. 2017; tiled with an online softmax as Dao et al. 2022, FlashAttention; GQA: Ainslie et al.
// 2023). Query row i stands at position first_query + i; it sees keys j with 0 <= position - j <
// window (window 0: all j <= position) and, with segments, only keys of its own segment. Head h
// reads kv head h / (H / G). No T x T matrix is stored and blocks that the mask empties are
// skipped.
//
// Products take the dtype of q, k, v with fp32 accumulation; softmax is fp32. In bf16 the
// probabilities are rounded to bf16 for the product with v. Keys past the last query are not read.
//
// A row's bits depend neither on the other rows, nor on where query tiles begin, nor on B: key
// blocks begin at multiples of one constant, in ascending order, and a block that is empty for a
// row changes nothing in it.
struct AttentionForward {
  static constexpr const char* kName = "attention_forward";
  View out;       // out (B, T, H, K) f32|bf16, overwritten; rows may be strided
  View lse;       // out (B, H, T)    f32: log sum exp of the scaled scores
  View q;         // in  (B, T, H, K) f32|bf16; rows may be strided (as all below)
  View k;         // in  (B, S, G, K) as q; S = keys, S >= first_query + T
  View v;         // in  (B, S, G, K) as q
  View segments;  // in  (B, S)       i32, or absent: no document mask
  std::int64_t first_query = 0;
  std::int64_t window = 0;
  float scale = 0;  // K^-0.5
  void check() const;
  // Of the (query, key) pairs that the mask lets through, a document being a run of equal segments.
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// Gradients of AttentionForward with first_query = 0 and S = T. P is recomputed from lse, tile by
// tile: dV = P^T dO; dP = dO V^T; dS = P * (dP - delta), delta = rowsum(dO * O); dQ = scale dS K;
// dK = scale dS^T Q. In bf16, P and dS are rounded to bf16 for these products. Each output tile is
// owned by one thread and summed in a fixed order: dK and dV over the query heads of a group, then
// over the queries; dQ over chunks of 512 keys, each summed in ascending order.
struct AttentionBackward {
  static constexpr const char* kName = "attention_backward";
  View dq;        // out (B, T, H, K) f32|bf16, overwritten; rows may be strided (as all below)
  View dk;        // out (B, T, G, K)
  View dv;        // out (B, T, G, K)
  View dout;      // in  (B, T, H, K) as q
  View out;       // in  (B, T, H, K) as q
  View lse;       // in  (B, H, T)    f32
  View q;         // in  (B, T, H, K) f32|bf16
  View k;         // in  (B, T, G, K) as q
  View v;         // in  (B, T, G, K) as q
  View segments;  // in  (B, T)       i32, or absent
  std::int64_t window = 0;
  float scale = 0;
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// The (query, key) pairs of one head and one sequence that causality and the window let through.
[[nodiscard]] double attention_pairs(std::int64_t queries, std::int64_t first_query,
                                     std::int64_t window);

void enqueue(CpuStream& stream, const AttentionForward& op);
void enqueue(CpuStream& stream, const AttentionBackward& op);

// What the op takes of a stream's scratch memory; of views, the shapes alone are read.
[[nodiscard]] std::int64_t scratch_bytes(const AttentionBackward& op, Isa isa, int threads);

}  // namespace lockstep::ops
