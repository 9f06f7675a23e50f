#pragma once

#include <cstdint>
#include <memory>

#include "model/activations.h"
#include "model/config.h"
#include "model/kv_cache.h"
#include "model/numerics.h"
#include "model/rope_table.h"
#include "model/weights.h"
#include "ops/accumulate.h"
#include "tensor/buffer.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep {

// One microbatch.
struct Leaf {
  View tokens;    // (B, T) i32, ids below the vocabulary's rows (kData otherwise)
  View targets;   // (B, T) i32, -1: no target. Absent where no loss is asked for
  View segments;  // (B, T) i32: attention stays inside a run of equal ids; or absent
};

// Sums over the rows with a target, in fp64, in the order of the rows.
struct LossSums {
  double ce = 0;           // cross-entropy, natural log
  double z = 0;            // logsumexp(logits)^2
  std::int64_t count = 0;  // rows with a target
};

// The scalar whose gradient is taken: scale * (sum ce + z_coefficient * sum z). `scale` is one over
// the number of targets in the global batch.
struct Objective {
  float scale = 1;
  float z_coefficient = 1e-5F;
  std::int64_t vocab = 0;  // columns from here on have no mass; 0: padded rows take part
};

struct ModelOptions {
  Precision precision = Precision::kBf16;
  Remat remat = Remat::kNone;
  Weights::Use use = Weights::Use::kForwardAndBackward;
};

// Olmo 3: weights, forward, backward. Every result is a pure function of weights and inputs: it
// depends neither on the number of threads nor on rematerialisation, and a sequence's rows do not
// depend on the other sequences of its leaf.
//
// Memory for activations and rotary tables grows on the first pass of a larger shape (reserve()
// sizes it ahead) and is never allocated in a later pass of the same shape. Not thread-safe; the
// stream is borrowed and must outlive the model.
class Model {
 public:
  Model(const ModelConfig& config, const ModelOptions& options, CpuStream& stream);

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const ModelOptions& options() const { return options_; }
  [[nodiscard]] const ParameterTable& table() const { return weights_.table(); }
  // The fp32 master weights, a flat array of the table's layout; zeros at first. Call refresh()
  // after every change.
  [[nodiscard]] const View& weights() const { return weights_.master(); }
  void refresh() { weights_.refresh(stream_); }
  // The parts of weights() that have copies for products; who writes those too need not refresh().
  [[nodiscard]] const std::vector<LinearWeight>& linears() const { return weights_.linears(); }

  // Memory for passes of up to this shape.
  void reserve(const LeafShape& shape, Pass pass);
  [[nodiscard]] std::int64_t activation_bytes() const { return memory_.bytes(); }

  // Loss and its gradient. `gradient`: flat f32 (table().size()) of the table's layout, every
  // tensor overwritten or added to, gaps left alone. kAdd gives the bits of a sum of two gradients.
  LossSums forward_backward(const Leaf& leaf, const Objective& objective, const View& gradient,
                            ops::Accumulate accumulate = ops::Accumulate::kOverwrite);

  // Loss alone, where columns from `vocab` on have no mass. Per row: token_ce(), token_lse(),
  // token_argmax().
  LossSums forward_loss(const Leaf& leaf, std::int64_t vocab);

  // Hidden states alone; logits() follows. Targets are not read.
  void forward(const Leaf& leaf);

  // The positions after those of the cache, which then holds them too. `tokens` (B, T), B the
  // cache's; logits() follows. The same bits as forward() of the whole sequences.
  void extend(KvCache& cache, const View& tokens);

  // Loss of the rows of the last forward() or extend(), the same bits as forward_loss(). `targets`:
  // (B, T) i32, -1: no target.
  LossSums loss(const View& targets, std::int64_t vocab);

  // Logits of rows [first_row, first_row + out.dim(0)) of the last forward(), forward_loss() or
  // extend(). `out`: (rows, vocabulary rows) f32; columns from vocab_size on are padding.
  void logits(std::int64_t first_row, const View& out);

  // Of the last pass with a loss, (N). They are overwritten by the next pass.
  [[nodiscard]] const View& token_ce() const { return activations_.token_ce; }          // f32
  [[nodiscard]] const View& token_lse() const { return activations_.token_lse; }        // f32
  [[nodiscard]] const View& token_argmax() const { return activations_.token_argmax; }  // i32

 private:
  void bind(const LeafShape& shape, Pass pass);
  void run_forward(const View& tokens, const View& segments, KvCache* cache);
  void run_backward(const Leaf& leaf, const View& gradient, ops::Accumulate accumulate);
  [[nodiscard]] LossSums sums(const View& targets) const;

  ModelConfig config_;
  ModelOptions options_;
  CpuStream& stream_;
  Weights weights_;
  RopeTable rope_;
  Buffer memory_;
  Activations activations_;
};

}  // namespace lockstep
