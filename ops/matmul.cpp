#include "ops/matmul.h"

#include "base/error.h"
#include "ops/contract.h"

namespace lockstep::ops {
namespace {

Types types_of(DType dtype) { return dtype == DType::kBF16 ? Types::kBF16 : Types::kF32; }

void require_weight(const char* op, const PackedWeight* w) {
  if (w == nullptr || w->forward().empty()) fail(ErrorKind::kBug, "[", op, "] w: absent");
}

void require_f32_to_add(const char* op, const char* name, const View& view, Accumulate accumulate) {
  if (accumulate == Accumulate::kAdd && view.dtype() != DType::kF32) {
    fail(ErrorKind::kBug, "[", op, "] ", name, ": ", view.describe(), ", want f32 to add to");
  }
}

double count(const View& view) { return static_cast<double>(view.size()); }
double size(const View& view) { return static_cast<double>(view.bytes()); }

}  // namespace

void MatmulForward::check() const {
  require_weight(kName, w);
  require_rank(kName, "x", x, 2);
  require(kName, "x", x, types_of(w->dtype()), {x.dim(0), w->in()}, Rows::kStrided);
  require(kName, "y", y, Types::kF32OrBF16, {x.dim(0), w->out()}, Rows::kStrided);
  require_apart(kName, "y", y, "x", x);
}
double MatmulForward::flops() const { return 2 * count(x) * static_cast<double>(w->out()); }
double MatmulForward::bytes() const { return size(y) + size(x) + size(w->forward()); }

void MatmulBackwardInput::check() const {
  require_weight(kName, w);
  if (w->backward().empty()) {
    fail(ErrorKind::kBug, "[", kName, "] w: packed for forward only, want kForwardAndBackward");
  }
  require_rank(kName, "dy", dy, 2);
  require(kName, "dy", dy, types_of(w->dtype()), {dy.dim(0), w->out()}, Rows::kStrided);
  require(kName, "dx", dx, Types::kF32OrBF16, {dy.dim(0), w->in()}, Rows::kStrided);
  require_f32_to_add(kName, "dx", dx, accumulate);
  require_apart(kName, "dx", dx, "dy", dy);
}
double MatmulBackwardInput::flops() const { return 2 * count(dy) * static_cast<double>(w->in()); }
double MatmulBackwardInput::bytes() const {
  return size(dx) * (accumulate == Accumulate::kAdd ? 2 : 1) + size(dy) + size(w->backward());
}

void MatmulBackwardWeight::check() const {
  require_rank(kName, "dy", dy, 2);
  require_rank(kName, "x", x, 2);
  require(kName, "dy", dy, Types::kF32OrBF16, {x.dim(0), dy.dim(1)}, Rows::kStrided);
  require(kName, "x", x, Types::kF32OrBF16, {x.dim(0), x.dim(1)}, Rows::kStrided);
  require_same_type(kName, "x", x, "dy", dy);
  require(kName, "dw", dw, Types::kF32, {dy.dim(1), x.dim(1)}, Rows::kStrided);
  require_apart(kName, "dw", dw, "dy", dy);
  require_apart(kName, "dw", dw, "x", x);
}
double MatmulBackwardWeight::flops() const { return 2 * count(dy) * static_cast<double>(x.dim(1)); }
double MatmulBackwardWeight::bytes() const {
  return size(dw) * (accumulate == Accumulate::kAdd ? 2 : 1) + size(dy) + size(x);
}

}  // namespace lockstep::ops
