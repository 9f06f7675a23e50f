#include "ops/rms_norm.h"

#include "ops/contract.h"

namespace lockstep::ops {

void RmsNormForward::check() const {
  require_rank(kName, "x", x, 2);
  const std::int64_t n = x.dim(0);
  const std::int64_t d = x.dim(1);
  require(kName, "y", y, Types::kF32OrBF16, {n, d});
  require(kName, "rstd", rstd, Types::kF32, {n});
  require(kName, "x", x, Types::kF32OrBF16, {n, d}, Rows::kStrided);
  require(kName, "weight", weight, Types::kF32, {d});
  require_apart(kName, "y", y, "x", x);
}
double RmsNormForward::flops() const { return 4 * static_cast<double>(x.size()); }
double RmsNormForward::bytes() const {
  return static_cast<double>(y.bytes() + rstd.bytes() + x.bytes() + weight.bytes());
}

void RmsNormBackward::check() const {
  require_rank(kName, "x", x, 2);
  const std::int64_t n = x.dim(0);
  const std::int64_t d = x.dim(1);
  require(kName, "dx", dx, Types::kF32OrBF16, {n, d});
  require(kName, "dweight", dweight, Types::kF32, {d});
  require(kName, "dy", dy, Types::kF32OrBF16, {n, d});
  require(kName, "x", x, Types::kF32OrBF16, {n, d}, Rows::kStrided);
  require(kName, "rstd", rstd, Types::kF32, {n});
  require(kName, "weight", weight, Types::kF32, {d});
  require_apart_or_same(kName, "dx", dx, "dy", dy);
  require_apart(kName, "dx", dx, "x", x);
}
double RmsNormBackward::flops() const { return 11 * static_cast<double>(x.size()); }
double RmsNormBackward::bytes() const {
  return static_cast<double>(dx.bytes() + dweight.bytes() + dy.bytes() + x.bytes() + rstd.bytes() +
                             weight.bytes());
}

void NormResidualForward::check() const {
  require_rank(kName, "x", x, 2);
  const std::int64_t n = x.dim(0);
  const std::int64_t d = x.dim(1);
  require(kName, "h", h, Types::kF32, {n, d});
  if (!h_rounded.empty()) require(kName, "h_rounded", h_rounded, Types::kBF16, {n, d});
  require(kName, "rstd", rstd, Types::kF32, {n});
  require(kName, "a", a, Types::kF32OrBF16, {n, d});
  require(kName, "x", x, Types::kF32, {n, d});
  require(kName, "weight", weight, Types::kF32, {d});
  require_apart_or_same(kName, "h", h, "x", x);
  require_apart(kName, "h", h, "a", a);
  require_apart(kName, "h_rounded", h_rounded, "x", x);
  require_apart(kName, "h_rounded", h_rounded, "a", a);
}
double NormResidualForward::flops() const { return 5 * static_cast<double>(x.size()); }
double NormResidualForward::bytes() const {
  const double rounded = h_rounded.empty() ? 0 : static_cast<double>(h_rounded.bytes());
  return rounded +
         static_cast<double>(h.bytes() + rstd.bytes() + a.bytes() + x.bytes() + weight.bytes());
}

}  // namespace lockstep::ops
