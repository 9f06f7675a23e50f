#include "ops/head_loss.h"

#include "base/error.h"
#include "ops/contract.h"

namespace lockstep::ops {
namespace {

struct Common {
  const char* op;
  const View& token_ce;
  const View& token_lse;
  const View& h;
  const PackedWeight* w;
  const View& targets;
  std::int64_t vocab;
};

void require_common(const Common& c) {
  if (c.w == nullptr || c.w->forward().empty()) fail(ErrorKind::kBug, "[", c.op, "] w: absent");
  require_rank(c.op, "h", c.h, 2);
  const std::int64_t rows = c.h.dim(0);
  require(c.op, "h", c.h, c.w->dtype() == DType::kBF16 ? Types::kBF16 : Types::kF32,
          {rows, c.w->in()}, Rows::kStrided);
  require(c.op, "token_ce", c.token_ce, Types::kF32, {rows});
  require(c.op, "token_lse", c.token_lse, Types::kF32, {rows});
  require(c.op, "targets", c.targets, Types::kI32, {rows});
  if (c.vocab < 1 || c.vocab > c.w->out()) {
    fail(ErrorKind::kBug, "[", c.op, "] vocab: ", c.vocab, ", want 1 to ", c.w->out());
  }
  const auto* target = c.targets.data<std::int32_t>();
  for (std::int64_t n = 0; n < rows; ++n) {
    if (target[n] < -1 || target[n] >= c.vocab) {
      fail(ErrorKind::kData, "[", c.op, "] targets: ", target[n], " at ", n, ", want -1 to ",
           c.vocab - 1, "; the data was tokenized with another vocabulary");
    }
  }
}

double size(const View& view) { return static_cast<double>(view.bytes()); }

double product_flops(const View& h, std::int64_t vocab) {
  return 2 * static_cast<double>(h.size()) * static_cast<double>(vocab);
}

}  // namespace

void HeadLossForward::check() const {
  require_common({kName, token_ce, token_lse, h, w, targets, vocab});
  if (!token_argmax.empty()) {
    require(kName, "token_argmax", token_argmax, Types::kI32, {h.dim(0)});
  }
}
double HeadLossForward::flops() const { return product_flops(h, vocab); }
double HeadLossForward::bytes() const {
  return size(token_ce) + size(token_lse) + size(h) + size(w->forward()) + size(targets);
}

void HeadLossBackward::check() const {
  require_common({kName, token_ce, token_lse, h, w, targets, vocab});
  if (w->backward().empty()) {
    fail(ErrorKind::kBug, "[", kName, "] w: packed for forward only, want kForwardAndBackward");
  }
  require(kName, "dh", dh, Types::kF32, {h.dim(0), w->in()});
  require(kName, "dw", dw, Types::kF32, {w->out(), w->in()});
  require_apart(kName, "dh", dh, "h", h);
}
double HeadLossBackward::flops() const { return 3 * product_flops(h, vocab); }
double HeadLossBackward::bytes() const {
  return size(token_ce) + size(token_lse) + size(dh) +
         size(dw) * (accumulate == Accumulate::kAdd ? 2 : 1) + size(h) + size(w->forward()) +
         size(w->backward()) + size(targets);
}

}  // namespace lockstep::ops
