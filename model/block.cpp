#include "model/block.h"

#include <cmath>

#include "model/dims.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/qk_norm_rope.h"
#include "ops/rms_norm.h"
#include "ops/run.h"
#include "ops/swiglu.h"

namespace lockstep {
namespace {

using ops::Accumulate;
using ops::run;

// (B, T, W) as (N, W).
View rows(const View& x) { return x.reshape({x.dim(0) * x.dim(1), x.dim(2)}); }

// The parts of a (B, T, Q + 2 P) view.
struct QkvParts {
  View q;
  View k;
  View v;
};
QkvParts parts_of(const View& qkv, const Dims& d) {
  return {.q = qkv.slice(2, 0, d.q_width()),
          .k = qkv.slice(2, d.q_width(), d.kv_width()),
          .v = qkv.slice(2, d.q_width() + d.kv_width(), d.kv_width())};
}

// The keys that a layer's queries see at most; 0: all.
std::int64_t window_of(const ModelConfig& config, std::int64_t layer) {
  return config.layer_type(layer) == LayerType::kSliding ? config.sliding_window : 0;
}

float attention_scale(const Dims& d) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(d.K)));
}

// Keys and values of a pass: its own, or with those of earlier positions.
struct KeysValues {
  View k_new;  // (B, T, P): where the pass writes its keys
  View k;      // (B, S, P)
  View v;      // (B, S, P)
  std::int64_t first = 0;
};
KeysValues keys_values(CpuStream& stream, const BlockActivations& a, const View& v,
                       const CachedKeys* cache) {
  if (cache == nullptr) return {.k_new = a.k, .k = a.k, .v = v};
  const std::int64_t T = v.dim(1);
  const View v_new = cache->v.slice(1, cache->first, T);
  run(stream, ops::Cast{.y = v_new, .x = v});
  return {.k_new = cache->k.slice(1, cache->first, T),
          .k = cache->k.slice(1, 0, cache->first + T),
          .v = cache->v.slice(1, 0, cache->first + T),
          .first = cache->first};
}

// x -> qkv -> q, k -> context.
void attention_inner(const BlockPass& pass, std::int64_t layer, const BlockWeights& w,
                     const BlockActivations& a, const CachedKeys* cache) {
  const Dims d = dims_of(pass.config);
  CpuStream& stream = pass.stream;
  const auto eps = static_cast<float>(pass.config.norm_eps);
  const RopeTable::Tables& rope = pass.rope.of(pass.config.layer_type(layer));

  run(stream, ops::MatmulForward{.y = rows(a.qkv), .x = a.x.operand(), .w = &w.qkv});
  const QkvParts qkv = parts_of(a.qkv, d);
  const KeysValues kv = keys_values(stream, a, qkv.v, cache);
  run(stream, ops::QkNormRopeForward{.y = a.q,
                                     .rstd = a.q_rstd,
                                     .x = qkv.q,
                                     .weight = w.master.q_norm,
                                     .cos = rope.cos,
                                     .sin = rope.sin,
                                     .first_position = kv.first,
                                     .eps = eps});
  run(stream, ops::QkNormRopeForward{.y = kv.k_new,
                                     .rstd = a.k_rstd,
                                     .x = qkv.k,
                                     .weight = w.master.k_norm,
                                     .cos = rope.cos,
                                     .sin = rope.sin,
                                     .first_position = kv.first,
                                     .eps = eps});
  run(stream, ops::AttentionForward{.out = a.context.split_last(d.K),
                                    .lse = a.lse,
                                    .q = a.q.split_last(d.K),
                                    .k = kv.k.split_last(d.K),
                                    .v = kv.v.split_last(d.K),
                                    .segments = pass.segments,
                                    .first_query = kv.first,
                                    .window = window_of(pass.config, layer),
                                    .scale = attention_scale(d)});
}

void attention_output(const BlockPass& pass, const BlockWeights& w, const BlockActivations& a) {
  run(pass.stream,
      ops::MatmulForward{.y = a.attention, .x = rows(a.context), .w = &w.attention_out});
}

// h -> gate, up -> product.
void mlp_inner(const BlockPass& pass, const BlockWeights& w, const BlockActivations& a) {
  run(pass.stream, ops::MatmulForward{.y = a.gate_up, .x = a.h.operand(), .w = &w.gate_up});
  run(pass.stream, ops::SwiGluForward{.y = a.product, .gate_up = a.gate_up});
}

void mlp_output(const BlockPass& pass, const BlockWeights& w, const BlockActivations& a) {
  run(pass.stream, ops::MatmulForward{.y = a.feed_forward, .x = a.product, .w = &w.down});
}

// y = x + RMSNorm(branch).
void add_normed(const BlockPass& pass, const Residual& y, const View& rstd, const View& branch,
                const Residual& x, const View& gain) {
  run(pass.stream, ops::NormResidualForward{.h = y.exact,
                                            .h_rounded = y.rounded,
                                            .rstd = rstd,
                                            .a = branch,
                                            .x = x.exact,
                                            .weight = gain,
                                            .eps = static_cast<float>(pass.config.norm_eps)});
}

void mlp_backward(const BlockPass& pass, const BlockWeights& w, const BlockActivations& a,
                  const BackwardWorkspace& g, const BlockTensors& dw) {
  CpuStream& stream = pass.stream;
  if (pass.remat == Remat::kMlp || pass.remat == Remat::kFull) mlp_inner(pass, w, a);
  if (pass.remat == Remat::kFull) mlp_output(pass, w, a);
  run(stream, ops::RmsNormBackward{.dx = g.branch,
                                   .dweight = dw.feed_forward_norm,
                                   .dy = g.residual,
                                   .x = a.feed_forward,
                                   .rstd = a.feed_forward_rstd,
                                   .weight = w.master.feed_forward_norm,
                                   .accumulate = pass.gradients});
  run(stream, ops::MatmulBackwardWeight{
                  .dw = dw.down, .dy = g.branch, .x = a.product, .accumulate = pass.gradients});
  run(stream, ops::MatmulBackwardInput{.dx = g.product, .dy = g.branch, .w = &w.down});
  const View& dgate_up = a.gate_up;
  run(stream, ops::SwiGluBackward{.dgate_up = dgate_up, .dy = g.product, .gate_up = a.gate_up});
  run(stream,
      ops::MatmulBackwardWeight{
          .dw = dw.gate_up, .dy = dgate_up, .x = a.h.operand(), .accumulate = pass.gradients});
  run(stream,
      ops::MatmulBackwardInput{
          .dx = g.residual, .dy = dgate_up, .w = &w.gate_up, .accumulate = Accumulate::kAdd});
}

// From the gradient of the context to that of q, k, v as they come out of their projection.
void attention_inner_backward(const BlockPass& pass, std::int64_t layer, const BlockWeights& w,
                              const BlockActivations& a, const BackwardWorkspace& g,
                              const BlockTensors& dw) {
  const Dims d = dims_of(pass.config);
  const RopeTable::Tables& rope = pass.rope.of(pass.config.layer_type(layer));
  const QkvParts qkv = parts_of(a.qkv, d);
  const QkvParts dqkv = parts_of(g.qkv, d);
  run(pass.stream, ops::AttentionBackward{.dq = dqkv.q.split_last(d.K),
                                          .dk = dqkv.k.split_last(d.K),
                                          .dv = dqkv.v.split_last(d.K),
                                          .dout = g.context.split_last(d.K),
                                          .out = a.context.split_last(d.K),
                                          .lse = a.lse,
                                          .q = a.q.split_last(d.K),
                                          .k = a.k.split_last(d.K),
                                          .v = qkv.v.split_last(d.K),
                                          .segments = pass.segments,
                                          .window = window_of(pass.config, layer),
                                          .scale = attention_scale(d)});
  run(pass.stream, ops::QkNormRopeBackward{.dx = dqkv.q,
                                           .dweight = dw.q_norm,
                                           .dy = dqkv.q,
                                           .x = qkv.q,
                                           .rstd = a.q_rstd,
                                           .weight = w.master.q_norm,
                                           .cos = rope.cos,
                                           .sin = rope.sin,
                                           .accumulate = pass.gradients});
  run(pass.stream, ops::QkNormRopeBackward{.dx = dqkv.k,
                                           .dweight = dw.k_norm,
                                           .dy = dqkv.k,
                                           .x = qkv.k,
                                           .rstd = a.k_rstd,
                                           .weight = w.master.k_norm,
                                           .cos = rope.cos,
                                           .sin = rope.sin,
                                           .accumulate = pass.gradients});
}

void attention_backward(const BlockPass& pass, std::int64_t layer, const BlockWeights& w,
                        const BlockActivations& a, const BackwardWorkspace& g,
                        const BlockTensors& dw) {
  CpuStream& stream = pass.stream;
  if (pass.remat == Remat::kAttention || pass.remat == Remat::kFull) {
    attention_inner(pass, layer, w, a, nullptr);
  }
  if (pass.remat == Remat::kFull) attention_output(pass, w, a);
  run(stream, ops::RmsNormBackward{.dx = g.branch,
                                   .dweight = dw.attention_norm,
                                   .dy = g.residual,
                                   .x = a.attention,
                                   .rstd = a.attention_rstd,
                                   .weight = w.master.attention_norm,
                                   .accumulate = pass.gradients});
  run(stream, ops::MatmulBackwardWeight{.dw = dw.attention_out,
                                        .dy = g.branch,
                                        .x = rows(a.context),
                                        .accumulate = pass.gradients});
  run(stream,
      ops::MatmulBackwardInput{.dx = rows(g.context), .dy = g.branch, .w = &w.attention_out});
  attention_inner_backward(pass, layer, w, a, g, dw);
  run(stream,
      ops::MatmulBackwardWeight{
          .dw = dw.qkv, .dy = rows(g.qkv), .x = a.x.operand(), .accumulate = pass.gradients});
  run(stream,
      ops::MatmulBackwardInput{
          .dx = g.residual, .dy = rows(g.qkv), .w = &w.qkv, .accumulate = Accumulate::kAdd});
}

}  // namespace

void block_forward(const BlockPass& pass, std::int64_t layer, const BlockWeights& w,
                   const BlockActivations& a, const Residual& y, const CachedKeys* cache) {
  attention_inner(pass, layer, w, a, cache);
  attention_output(pass, w, a);
  add_normed(pass, a.h, a.attention_rstd, a.attention, a.x, w.master.attention_norm);
  mlp_inner(pass, w, a);
  mlp_output(pass, w, a);
  add_normed(pass, y, a.feed_forward_rstd, a.feed_forward, a.h, w.master.feed_forward_norm);
}

void block_backward(const BlockPass& pass, std::int64_t layer, const BlockWeights& w,
                    const BlockActivations& a, const BackwardWorkspace& g, const BlockTensors& dw) {
  mlp_backward(pass, w, a, g, dw);
  attention_backward(pass, layer, w, a, g, dw);
}

}  // namespace lockstep
