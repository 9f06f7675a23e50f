#include "model/training_scratch.h"

#include <algorithm>

#include "model/dims.h"
#include "ops/attention.h"
#include "ops/head_loss.h"
#include "ops/matmul.h"

namespace lockstep {
namespace {

// Ops on views that have shapes and no memory.
struct Measured {
  Dims d;
  LeafShape shape;
  DType type;
  Isa isa;
  int threads;
  Arena arena;

  View heads(std::int64_t count) {
    return arena.take(type, {shape.sequences, shape.positions, count, d.K});
  }
  View rows(std::int64_t width) { return arena.take(type, {shape.tokens(), width}); }

  std::int64_t attention(std::int64_t window) {
    const View q = heads(d.H);
    const View k = heads(d.G);
    const View lse = arena.take(DType::kF32, {shape.sequences, d.H, shape.positions});
    return ops::scratch_bytes(ops::AttentionBackward{.dq = q,
                                                     .dk = k,
                                                     .dv = k,
                                                     .dout = q,
                                                     .out = q,
                                                     .lse = lse,
                                                     .q = q,
                                                     .k = k,
                                                     .v = k,
                                                     .segments = {},
                                                     .window = window},
                              isa, threads);
  }

  std::int64_t product(std::int64_t out, std::int64_t in) {
    return ops::scratch_bytes(
        ops::MatmulBackwardWeight{
            .dw = arena.take(DType::kF32, {out, in}), .dy = rows(out), .x = rows(in)},
        isa, threads);
  }

  std::int64_t head(std::int64_t vocab, ops::Accumulate accumulate) {
    const ops::PackedWeight w(d.V, d.D, type, isa, ops::PackedWeight::Use::kForwardAndBackward,
                              arena);
    return ops::scratch_bytes(
        ops::HeadLossBackward{.token_ce = {},
                              .token_lse = {},
                              .dh = {},
                              .dw = {},
                              .h = rows(d.D),
                              .w = &w,
                              .targets = arena.take(DType::kI32, {shape.tokens()}),
                              .vocab = vocab,
                              .accumulate = accumulate},
        isa, threads);
  }
};

}  // namespace

std::int64_t training_scratch_bytes(const ModelConfig& config, const LeafShape& shape,
                                    Precision precision, ops::Accumulate accumulate, Isa isa,
                                    int threads) {
  Measured m{.d = dims_of(config),
             .shape = shape,
             .type = product_dtype(precision),
             .isa = isa,
             .threads = threads,
             .arena = {}};
  const Dims& d = m.d;
  std::int64_t most =
      std::max({m.product(d.qkv_width(), d.D), m.product(d.D, d.q_width()), m.product(2 * d.F, d.D),
                m.product(d.D, d.F), m.head(d.V, accumulate)});
  for (std::int64_t layer = 0; layer < d.L; ++layer) {
    const bool sliding = config.layer_type(layer) == LayerType::kSliding;
    most = std::max(most, m.attention(sliding ? config.sliding_window : 0));
  }
  return most;
}

}  // namespace lockstep
