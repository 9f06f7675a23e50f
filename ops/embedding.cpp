#include "ops/embedding.h"

#include "ops/contract.h"

namespace lockstep::ops {

void EmbeddingForward::check() const {
  require_rank(kName, "y", y, 2);
  require_rank(kName, "weight", weight, 2);
  require(kName, "y", y, Types::kF32, {y.dim(0), y.dim(1)});
  if (!y_rounded.empty()) {
    require(kName, "y_rounded", y_rounded, Types::kBF16, {y.dim(0), y.dim(1)});
  }
  require(kName, "tokens", tokens, Types::kI32, {y.dim(0)});
  require(kName, "weight", weight, Types::kF32, {weight.dim(0), y.dim(1)});
  require_apart(kName, "y", y, "weight", weight);
  require_apart(kName, "y_rounded", y_rounded, "weight", weight);
}
double EmbeddingForward::flops() const { return 0; }
double EmbeddingForward::bytes() const {
  const double rounded = y_rounded.empty() ? 0 : static_cast<double>(y_rounded.bytes());
  return rounded + static_cast<double>(2 * y.bytes() + tokens.bytes());
}

void EmbeddingBackward::check() const {
  require_rank(kName, "dweight", dweight, 2);
  require_rank(kName, "dy", dy, 2);
  require(kName, "dweight", dweight, Types::kF32, {dweight.dim(0), dweight.dim(1)});
  require(kName, "tokens", tokens, Types::kI32, {dy.dim(0)});
  require(kName, "dy", dy, Types::kF32, {dy.dim(0), dweight.dim(1)});
  require_apart(kName, "dweight", dweight, "dy", dy);
}
double EmbeddingBackward::flops() const { return static_cast<double>(dy.size()); }
double EmbeddingBackward::bytes() const {
  // What is added to is read and written by the tokens' rows alone.
  const auto to = accumulate == Accumulate::kAdd ? 2 * dy.bytes() : dweight.bytes();
  return static_cast<double>(to + tokens.bytes() + dy.bytes());
}

}  // namespace lockstep::ops
