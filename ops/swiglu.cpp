#include "ops/swiglu.h"

#include "ops/contract.h"

namespace lockstep::ops {

void SwiGluForward::check() const {
  require_rank(kName, "y", y, 2);
  require(kName, "y", y, Types::kF32OrBF16, {y.dim(0), y.dim(1)});
  require(kName, "gate_up", gate_up, Types::kF32OrBF16, {y.dim(0), 2 * y.dim(1)});
  require_same_type(kName, "gate_up", gate_up, "y", y);
  require_apart(kName, "y", y, "gate_up", gate_up);
}
// The exponential and the quotient count as one each.
double SwiGluForward::flops() const { return 5 * static_cast<double>(y.size()); }
double SwiGluForward::bytes() const { return static_cast<double>(y.bytes() + gate_up.bytes()); }

void SwiGluBackward::check() const {
  require_rank(kName, "dy", dy, 2);
  require(kName, "dy", dy, Types::kF32OrBF16, {dy.dim(0), dy.dim(1)});
  require(kName, "dgate_up", dgate_up, Types::kF32OrBF16, {dy.dim(0), 2 * dy.dim(1)});
  require(kName, "gate_up", gate_up, Types::kF32OrBF16, {dy.dim(0), 2 * dy.dim(1)});
  require_same_type(kName, "dgate_up", dgate_up, "dy", dy);
  require_same_type(kName, "gate_up", gate_up, "dy", dy);
  require_apart_or_same(kName, "dgate_up", dgate_up, "gate_up", gate_up);
  require_apart(kName, "dgate_up", dgate_up, "dy", dy);
}
double SwiGluBackward::flops() const { return 12 * static_cast<double>(dy.size()); }
double SwiGluBackward::bytes() const {
  return static_cast<double>(dgate_up.bytes() + dy.bytes() + gate_up.bytes());
}

}  // namespace lockstep::ops
