#pragma once

#include <cstdint>

#include "ops/cpu/by_isa.h"

// What the driver (attention.cpp) hands to the attention kernels, which are compiled once per
// instruction set: plain numbers and pointers.
//
// Vocabulary: a tile is 16 or 32 query rows, its lanes; a block is 64 keys from a multiple of 64; a
// chunk is the keys that one backward task owns. A unit is what one lane of one multiply-add takes:
// an f32, or a pair of bf16 that are neighbours along the sum.
namespace lockstep::ops {

inline constexpr int kAttentionBlock = 64;
inline constexpr int kAttentionMaxLanes = 32;
// Up to so many rows it is quicker to go row by row than to fill a tile of 16 lanes.
inline constexpr int kAttentionDecodeRows = 8;
// A constant, so that the gradient of a query is summed in the same order whatever the length.
inline constexpr int kAttentionChunk = 512;
// Query tiles whose packed rows a backward task keeps at hand.
inline constexpr int kAttentionGroup = 16;

// A (B, T, heads, K) tensor; strides in elements.
struct AttentionTensor {
  void* data;
  std::int64_t batch, row, head;
};

struct AttentionProblem {
  AttentionTensor q, k, v, out;
  AttentionTensor dout, dq, dk, dv;  // backward only
  float* lse;                        // (B, H, T)
  const std::int32_t* segments;      // null: none
  std::int64_t segments_batch;
  std::int32_t batches, queries, keys, heads, kv_heads, dim;  // keys = first_query + queries
  std::int32_t first_query;
  std::int32_t window;  // as the kernels compare: at least 1, INT32_MAX for none
  float scale;
  // Smallest and largest segment of each block, (B, blocks) each; null without segments.
  const std::int32_t* block_min;
  const std::int32_t* block_max;
};

// How the forward pass is cut into tiles. A tile is the unit of parallel work.
struct AttentionForwardWork {
  int vectors;   // lanes of a tile / 16: 1 or 2
  bool grouped;  // one tile holds all queries of all heads that share a kv head
  // Packed keys and values of all kv heads; null: each tile packs the blocks that it meets.
  char* packed;
};

// The queries that see the keys [kAttentionChunk * c, kAttentionChunk * (c + 1)) are in tiles
// [begin, end); `offset` is the sum of end - begin over the chunks before.
struct AttentionChunk {
  std::int32_t begin, end;
  std::int64_t offset;
};

// How the backward pass is cut: a task is a (pair, chunk) with pair = b * G + g in [first_pair,
// first_pair + pairs).
struct AttentionBackwardWork {
  int vectors;          // lanes of a tile / 16
  std::int32_t chunks;  // per pair
  std::int32_t first_pair;
  const AttentionChunk* chunk;  // chunks + 1: the last holds the offset past the end
  // Partial dq, [pair - first_pair][head of the group][chunk.offset + tile - chunk.begin] of
  // [dim rounded up to 16][lane].
  float* dq_partial;
};

struct AttentionForwardKernels {
  std::int64_t (*packed_block_bytes)(const AttentionProblem& p);
  std::int64_t (*scratch_bytes)(const AttentionProblem& p);  // of one thread
  // Packs one block of the keys and values of a pair b * G + g to its place in work.packed.
  void (*pack_block)(const AttentionProblem& p, const AttentionForwardWork& work, std::int32_t pair,
                     std::int32_t block);
  // head = b * H + h, or when grouped b * G + g.
  void (*tile)(const AttentionProblem& p, const AttentionForwardWork& work, std::int32_t head,
               std::int32_t tile, char* scratch);
};

// For at most kAttentionDecodeRows queries of all heads that share a kv head.
struct AttentionDecodeKernels {
  std::int64_t (*scratch_bytes)(const AttentionProblem& p);  // of one thread
  // All queries of pair b * G + g.
  void (*pair)(const AttentionProblem& p, std::int32_t pair, char* scratch);
};

struct AttentionBackwardKernels {
  std::int64_t (*scratch_bytes)(const AttentionProblem& p, int vectors);  // of one thread
  // dk and dv of the chunk's keys, and the chunk's part of dq.
  void (*chunk)(const AttentionProblem& p, const AttentionBackwardWork& work, std::int32_t pair,
                std::int32_t chunk, char* scratch);
  // Sums the parts of dq of one tile of head b * H + h and stores them.
  void (*finish)(const AttentionProblem& p, const AttentionBackwardWork& work, std::int32_t head,
                 std::int32_t tile);
};

LOCKSTEP_FOR_EACH_ISA(extern const AttentionForwardKernels attention_forward_f32;
                      extern const AttentionForwardKernels attention_forward_bf16;
                      extern const AttentionDecodeKernels attention_decode_f32;
                      extern const AttentionDecodeKernels attention_decode_bf16;
                      extern const AttentionBackwardKernels attention_backward_f32;
                      extern const AttentionBackwardKernels attention_backward_bf16;)

}  // namespace lockstep::ops
