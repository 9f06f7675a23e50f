#include "ops/elementwise.h"

#include "ops/contract.h"

namespace lockstep::ops {

void Add::check() const {
  require_rank(kName, "y", y, 1);
  require(kName, "y", y, Types::kF32, {y.dim(0)});
  require(kName, "a", a, Types::kF32, {y.dim(0)});
  require(kName, "b", b, Types::kF32, {y.dim(0)});
  require_apart_or_same(kName, "y", y, "a", a);
  require_apart_or_same(kName, "y", y, "b", b);
}
double Add::flops() const { return static_cast<double>(y.size()); }
double Add::bytes() const { return static_cast<double>(y.bytes() + a.bytes() + b.bytes()); }

void Cast::check() const {
  for (const auto& [name, view] : {std::pair("y", y), std::pair("x", x)}) {
    if (view.empty() || view.rank() == 0 || view.size() == 0 ||
        (view.dtype() != DType::kF32 && view.dtype() != DType::kBF16)) {
      fail(ErrorKind::kBug, "[", kName, "] ", name, ": ", view.describe(),
           ", want f32 or bf16 with at least one element");
    }
  }
  if (!y.same_shape(x)) {
    fail(ErrorKind::kBug, "[", kName, "] y: ", y.describe(),
         ", want the shape of x: ", x.describe());
  }
  require_apart(kName, "y", y, "x", x);
}
double Cast::flops() const { return 0; }
double Cast::bytes() const { return static_cast<double>(y.bytes() + x.bytes()); }

void SumOfSquares::check() const {
  if (sum == nullptr) fail(ErrorKind::kBug, "[", kName, "] sum: absent, want a double");
  require_rank(kName, "x", x, 1);
  require(kName, "x", x, Types::kF32, {x.dim(0)});
}
double SumOfSquares::flops() const { return 2 * static_cast<double>(x.size()); }
double SumOfSquares::bytes() const { return static_cast<double>(x.bytes()); }

}  // namespace lockstep::ops
