#include "model/activations.h"

#include <utility>

#include "model/dims.h"

namespace lockstep {
namespace {

// What a policy keeps of each block.
struct Kept {
  bool attention_inner;  // qkv, q, k, context, lse
  bool mlp_inner;        // gate_up, product
  bool outputs;          // attention, feed_forward
};

Kept kept_by(Pass pass, Remat remat) {
  if (pass == Pass::kForward) return {false, false, false};
  return {.attention_inner = remat == Remat::kNone || remat == Remat::kMlp,
          .mlp_inner = remat == Remat::kNone || remat == Remat::kAttention,
          .outputs = remat != Remat::kFull};
}

class Layout {
 public:
  Layout(const ModelConfig& config, const LeafShape& shape, Pass pass, Remat remat,
         Precision precision, Arena& arena)
      : dims_(dims_of(config)),
        shape_(shape),
        pass_(pass),
        kept_(kept_by(pass, remat)),
        product_(product_dtype(precision)),
        arena_(arena) {}

  Activations run() {
    Activations a;
    a.shape = shape_;
    a.pass = pass_;
    const std::int64_t N = shape_.tokens();
    residuals(a);
    for (BlockActivations& block : a.blocks) keep(block);
    a.normed = arena_.take(product_, {N, dims_.D});
    a.normed_rstd = arena_.take(DType::kF32, {N});
    a.token_ce = arena_.take(DType::kF32, {N});
    a.token_lse = arena_.take(DType::kF32, {N});
    a.token_argmax = arena_.take(DType::kI32, {N});
    if (pass_ == Pass::kTraining) {
      a.gradient.residual = arena_.take(DType::kF32, {N, dims_.D});
      a.gradient.branch = arena_.take(product_, {N, dims_.D});
    }
    share(a);
    return a;
  }

 private:
  // In fp32 a training pass needs each input of a product where it was; in bf16 the exact stream is
  // updated in place and the rounded copies stay. A forward pass does all in place.
  void residuals(Activations& a) {
    const std::int64_t N = shape_.tokens();
    const bool training = pass_ == Pass::kTraining;
    const bool fp32 = product_ == DType::kF32;
    const auto take = [&] {
      Residual at{.exact = fp32 || exact_.empty() ? arena_.take(DType::kF32, {N, dims_.D}) : exact_,
                  .rounded = fp32 ? View() : arena_.take(DType::kBF16, {N, dims_.D})};
      exact_ = at.exact;
      return at;
    };
    a.blocks.resize(static_cast<std::size_t>(dims_.L));
    a.out = take();
    for (BlockActivations& block : a.blocks) {
      block.x = training ? take() : a.out;
      block.h = training ? take() : a.out;
    }
  }

  void keep(BlockActivations& block) {
    const std::int64_t N = shape_.tokens();
    if (kept_.attention_inner) attention_inner(block);
    if (kept_.mlp_inner) mlp_inner(block);
    if (kept_.outputs) {
      block.attention = arena_.take(product_, {N, dims_.D});
      block.feed_forward = arena_.take(product_, {N, dims_.D});
    }
    if (pass_ == Pass::kTraining) rstds(block);
  }

  // The two halves of a block never run at once, so what they do not keep has one place.
  void share(Activations& a) {
    const std::int64_t N = shape_.tokens();
    const bool training = pass_ == Pass::kTraining;
    BlockActivations shared;
    if (!training) rstds(shared);
    if (!kept_.outputs) {
      shared.attention = arena_.take(product_, {N, dims_.D});
      shared.feed_forward = shared.attention;
    }
    const std::int64_t mark = arena_.mark();
    if (!kept_.mlp_inner) mlp_inner(shared);
    if (training) a.gradient.product = arena_.take(product_, {N, dims_.F});
    arena_.release(mark);
    if (!kept_.attention_inner) attention_inner(shared);
    if (training) {
      const auto [B, T] = shape_;
      a.gradient.context = arena_.take(product_, {B, T, dims_.q_width()});
      a.gradient.qkv = arena_.take(product_, {B, T, dims_.qkv_width()});
    }
    for (BlockActivations& block : a.blocks) adopt(block, shared);
  }

  void adopt(BlockActivations& block, const BlockActivations& shared) const {
    if (pass_ == Pass::kForward) {
      block.q_rstd = shared.q_rstd;
      block.k_rstd = shared.k_rstd;
      block.attention_rstd = shared.attention_rstd;
      block.feed_forward_rstd = shared.feed_forward_rstd;
    }
    if (!kept_.attention_inner) {
      block.qkv = shared.qkv;
      block.q = shared.q;
      block.k = shared.k;
      block.context = shared.context;
      block.lse = shared.lse;
    }
    if (!kept_.mlp_inner) {
      block.gate_up = shared.gate_up;
      block.product = shared.product;
    }
    if (!kept_.outputs) {
      block.attention = shared.attention;
      block.feed_forward = shared.feed_forward;
    }
  }

  void attention_inner(BlockActivations& block) {
    const auto [B, T] = shape_;
    block.qkv = arena_.take(product_, {B, T, dims_.qkv_width()});
    block.q = arena_.take(product_, {B, T, dims_.q_width()});
    block.k = arena_.take(product_, {B, T, dims_.kv_width()});
    block.context = arena_.take(product_, {B, T, dims_.q_width()});
    block.lse = arena_.take(DType::kF32, {B, dims_.H, T});
  }

  void mlp_inner(BlockActivations& block) {
    const std::int64_t N = shape_.tokens();
    block.gate_up = arena_.take(product_, {N, 2 * dims_.F});
    block.product = arena_.take(product_, {N, dims_.F});
  }

  void rstds(BlockActivations& block) {
    const std::int64_t N = shape_.tokens();
    for (View* rstd :
         {&block.q_rstd, &block.k_rstd, &block.attention_rstd, &block.feed_forward_rstd}) {
      *rstd = arena_.take(DType::kF32, {N});
    }
  }

  Dims dims_;
  LeafShape shape_;
  Pass pass_;
  Kept kept_;
  DType product_;
  Arena& arena_;
  View exact_;  // the exact stream of bf16 mode
};

}  // namespace

Activations lay_out_activations(const ModelConfig& config, const LeafShape& shape, Pass pass,
                                Remat remat, Precision precision, Arena& arena) {
  return Layout(config, shape, pass, remat, precision, arena).run();
}

std::int64_t activation_bytes(const ModelConfig& config, const LeafShape& shape, Pass pass,
                              Remat remat, Precision precision) {
  Arena arena;
  static_cast<void>(lay_out_activations(config, shape, pass, remat, precision, arena));
  return arena.peak();
}

}  // namespace lockstep
