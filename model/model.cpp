#include "model/model.h"

#include <algorithm>

#include "model/block.h"
#include "model/dims.h"
#include "ops/embedding.h"
#include "ops/head_loss.h"
#include "ops/matmul.h"
#include "ops/rms_norm.h"
#include "ops/run.h"

namespace lockstep {
namespace {

using ops::run;

LeafShape shape_of(const View& tokens) {
  LOCKSTEP_CHECK(tokens.rank() == 2 && tokens.dtype() == DType::kI32 && tokens.size() > 0,
                 "tokens ", tokens.describe());
  return {.sequences = tokens.dim(0), .positions = tokens.dim(1)};
}

View flattened(const View& x) { return x.reshape({x.size()}); }

}  // namespace

Model::Model(const ModelConfig& config, const ModelOptions& options, CpuStream& stream)
    : config_(config),
      options_(options),
      stream_(stream),
      weights_(config, options.precision, options.use, stream.isa()) {}

void Model::reserve(const LeafShape& shape, Pass pass) {
  if (rope_.positions() < shape.positions) rope_ = RopeTable(config_, shape.positions);
  const std::int64_t bytes =
      lockstep::activation_bytes(config_, shape, pass, options_.remat, options_.precision);
  if (memory_.bytes() < bytes) {
    activations_ = Activations();
    memory_ = Buffer();
    memory_ = Buffer(bytes, "activations");
  }
}

void Model::bind(const LeafShape& shape, Pass pass) {
  if (activations_.shape == shape && activations_.pass == pass) return;
  reserve(shape, pass);
  Arena arena(memory_);
  activations_ =
      lay_out_activations(config_, shape, pass, options_.remat, options_.precision, arena);
}

void Model::run_forward(const View& tokens, const View& segments, KvCache* cache) {
  const Activations& a = activations_;
  const BlockPass pass{.stream = stream_,
                       .config = config_,
                       .rope = rope_,
                       .segments = segments,
                       .remat = options_.remat};
  const Residual& x = a.blocks.front().x;
  run(stream_, ops::EmbeddingForward{.y = x.exact,
                                     .y_rounded = x.rounded,
                                     .tokens = flattened(tokens),
                                     .weight = weights_.outer().embedding});
  for (std::int64_t layer = 0; layer < config_.n_layers; ++layer) {
    const auto index = static_cast<std::size_t>(layer);
    const Residual& y = index + 1 < a.blocks.size() ? a.blocks[index + 1].x : a.out;
    CachedKeys cached;
    if (cache != nullptr) cached = cache->block(layer);
    block_forward(pass, layer, weights_.block(layer), a.blocks[index], y,
                  cache == nullptr ? nullptr : &cached);
  }
  run(stream_, ops::RmsNormForward{.y = a.normed,
                                   .rstd = a.normed_rstd,
                                   .x = a.out.exact,
                                   .weight = weights_.outer().final_norm,
                                   .eps = static_cast<float>(config_.norm_eps)});
}

// From the gradient of the normed hidden states, in a.gradient.residual, down to the embedding.
void Model::run_backward(const Leaf& leaf, const View& gradient, ops::Accumulate accumulate) {
  const Activations& a = activations_;
  const BlockPass pass{.stream = stream_,
                       .config = config_,
                       .rope = rope_,
                       .segments = leaf.segments,
                       .remat = options_.remat,
                       .gradients = accumulate};
  const OuterTensors dw = table().outer(gradient);
  run(stream_, ops::RmsNormBackward{.dx = a.gradient.residual,
                                    .dweight = dw.final_norm,
                                    .dy = a.gradient.residual,
                                    .x = a.out.exact,
                                    .rstd = a.normed_rstd,
                                    .weight = weights_.outer().final_norm,
                                    .accumulate = accumulate});
  for (std::int64_t layer = config_.n_layers - 1; layer >= 0; --layer) {
    block_backward(pass, layer, weights_.block(layer), a.blocks[static_cast<std::size_t>(layer)],
                   a.gradient, table().block(gradient, layer));
  }
  run(stream_, ops::EmbeddingBackward{.dweight = dw.embedding,
                                      .tokens = flattened(leaf.tokens),
                                      .dy = a.gradient.residual,
                                      .accumulate = accumulate});
}

LossSums Model::forward_backward(const Leaf& leaf, const Objective& objective, const View& gradient,
                                 ops::Accumulate accumulate) {
  bind(shape_of(leaf.tokens), Pass::kTraining);
  const Activations& a = activations_;
  run_forward(leaf.tokens, leaf.segments, nullptr);
  run(stream_,
      ops::HeadLossBackward{.token_ce = a.token_ce,
                            .token_lse = a.token_lse,
                            .dh = a.gradient.residual,
                            .dw = table().outer(gradient).head,
                            .h = a.normed,
                            .w = &weights_.head(),
                            .targets = flattened(leaf.targets),
                            .vocab = objective.vocab == 0 ? config_.vocab_rows() : objective.vocab,
                            .z_coefficient = objective.z_coefficient,
                            .scale = objective.scale,
                            .accumulate = accumulate});
  run_backward(leaf, gradient, accumulate);
  return sums(leaf.targets);
}

LossSums Model::forward_loss(const Leaf& leaf, std::int64_t vocab) {
  forward(leaf);
  return loss(leaf.targets, vocab);
}

LossSums Model::loss(const View& targets, std::int64_t vocab) {
  const Activations& a = activations_;
  LOCKSTEP_CHECK(!a.normed.empty(), "no forward pass before loss");
  run(stream_, ops::HeadLossForward{.token_ce = a.token_ce,
                                    .token_lse = a.token_lse,
                                    .token_argmax = a.token_argmax,
                                    .h = a.normed,
                                    .w = &weights_.head(),
                                    .targets = flattened(targets),
                                    .vocab = vocab});
  return sums(targets);
}

void Model::forward(const Leaf& leaf) {
  bind(shape_of(leaf.tokens), Pass::kForward);
  run_forward(leaf.tokens, leaf.segments, nullptr);
}

void Model::extend(KvCache& cache, const View& tokens) {
  const LeafShape shape = shape_of(tokens);
  LOCKSTEP_CHECK(shape.sequences == cache.sequences(), tokens.describe(), " for a cache of ",
                 cache.sequences());
  LOCKSTEP_CHECK(cache.length() + shape.positions <= cache.capacity(), cache.length(), " + ",
                 shape.positions, " of ", cache.capacity(), " positions");
  if (rope_.positions() < cache.capacity()) rope_ = RopeTable(config_, cache.capacity());
  bind(shape, Pass::kForward);
  run_forward(tokens, {}, &cache);
  cache.advance(shape.positions);
}

void Model::logits(std::int64_t first_row, const View& out) {
  LOCKSTEP_CHECK(!activations_.normed.empty(), "no forward pass before logits");
  run(stream_, ops::MatmulForward{.y = out,
                                  .x = activations_.normed.slice(0, first_row, out.dim(0)),
                                  .w = &weights_.head()});
}

LossSums Model::sums(const View& targets) const {
  const auto* target = targets.data<std::int32_t>();
  const auto* ce = activations_.token_ce.data<float>();
  const auto* lse = activations_.token_lse.data<float>();
  LossSums sums;
  for (std::int64_t row = 0; row < targets.size(); ++row) {
    if (target[row] < 0) continue;
    sums.ce += static_cast<double>(ce[row]);
    sums.z += static_cast<double>(lse[row]) * static_cast<double>(lse[row]);
    ++sums.count;
  }
  return sums;
}

}  // namespace lockstep
