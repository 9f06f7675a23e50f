#pragma once

#include "ops/accumulate.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep::ops {

// y[n,:] = weight[tokens[n],:], no scaling.
struct EmbeddingForward {
  static constexpr const char* kName = "embedding_forward";
  View y;          // out (N, D) f32, overwritten
  View y_rounded;  // out (N, D) bf16, the same rounded; absent in fp32 mode
  View tokens;     // in  (N)    i32, each in [0, V): checked, kData otherwise
  View weight;     // in  (V, D) f32
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// dweight[v,:] (=|+=) sum over n with tokens[n] == v of dy[n,:], in order of n from zero; the other
// rows are zeroed, or with kAdd left as they are.
struct EmbeddingBackward {
  static constexpr const char* kName = "embedding_backward";
  View dweight;  // out (V, D) f32
  View tokens;   // in  (N)    i32
  View dy;       // in  (N, D) f32
  Accumulate accumulate = Accumulate::kOverwrite;
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

void enqueue(CpuStream& stream, const EmbeddingForward& op);
void enqueue(CpuStream& stream, const EmbeddingBackward& op);

}  // namespace lockstep::ops
