#include "ops/qk_norm_rope.h"

#include "ops/contract.h"

namespace lockstep::ops {
namespace {

// The tables' shape, and that they reach the last position.
void require_tables(const char* op, const View& x, const View& cos, const View& sin,
                    std::int64_t first_position) {
  require_rank(op, "cos", cos, 2);
  require(op, "cos", cos, Types::kF32, {cos.dim(0), cos.dim(1)});
  require(op, "sin", sin, Types::kF32, {cos.dim(0), cos.dim(1)});
  if (first_position < 0 || first_position + x.dim(1) > cos.dim(0)) {
    fail(ErrorKind::kBug, "[", op, "] cos: ", cos.describe(), ", want positions ", first_position,
         " to ", first_position + x.dim(1) - 1);
  }
  if (x.dim(2) % (2 * cos.dim(1)) != 0) {
    fail(ErrorKind::kBug, "[", op, "] x: ", x.describe(), ", want a whole number of heads of ",
         2 * cos.dim(1), " dims");
  }
}

}  // namespace

void QkNormRopeForward::check() const {
  require_rank(kName, "x", x, 3);
  const std::int64_t b = x.dim(0);
  const std::int64_t t = x.dim(1);
  const std::int64_t d = x.dim(2);
  require(kName, "y", y, Types::kF32OrBF16, {b, t, d}, Rows::kStrided);
  require(kName, "rstd", rstd, Types::kF32, {b * t});
  require(kName, "x", x, Types::kF32OrBF16, {b, t, d}, Rows::kStrided);
  require(kName, "weight", weight, Types::kF32, {d});
  require_tables(kName, x, cos, sin, first_position);
  require_apart(kName, "y", y, "x", x);
}
double QkNormRopeForward::flops() const { return 7 * static_cast<double>(x.size()); }
double QkNormRopeForward::bytes() const {
  const std::int64_t tables = 2 * x.dim(1) * cos.dim(1) * 4;
  return static_cast<double>(y.bytes() + rstd.bytes() + x.bytes() + weight.bytes() + tables);
}

void QkNormRopeBackward::check() const {
  require_rank(kName, "x", x, 3);
  const std::int64_t b = x.dim(0);
  const std::int64_t t = x.dim(1);
  const std::int64_t d = x.dim(2);
  require(kName, "dx", dx, Types::kF32OrBF16, {b, t, d}, Rows::kStrided);
  require(kName, "dweight", dweight, Types::kF32, {d});
  require(kName, "dy", dy, Types::kF32OrBF16, {b, t, d}, Rows::kStrided);
  require(kName, "x", x, Types::kF32OrBF16, {b, t, d}, Rows::kStrided);
  require(kName, "rstd", rstd, Types::kF32, {b * t});
  require(kName, "weight", weight, Types::kF32, {d});
  require_tables(kName, x, cos, sin, first_position);
  require_apart_or_same(kName, "dx", dx, "dy", dy);
  require_apart(kName, "dx", dx, "x", x);
}
double QkNormRopeBackward::flops() const { return 17 * static_cast<double>(x.size()); }
double QkNormRopeBackward::bytes() const {
  const std::int64_t tables = 2 * x.dim(1) * cos.dim(1) * 4;
  return static_cast<double>(dx.bytes() + dweight.bytes() + dy.bytes() + x.bytes() + rstd.bytes() +
                             weight.bytes() + tables);
}

}  // namespace lockstep::ops
