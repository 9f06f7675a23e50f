#include "ops/packed_weight.h"

#include "base/error.h"
#include "ops/contract.h"
#include "ops/cpu/gemm.h"

namespace lockstep::ops {

PackedWeight::PackedWeight(std::int64_t out, std::int64_t in, DType dtype, Isa isa, Use use,
                           Arena& arena)
    : out_(out), in_(in), dtype_(dtype), isa_(isa), use_(use) {
  LOCKSTEP_CHECK(out > 0 && in > 0, "weight [", out, ", ", in, "]");
  LOCKSTEP_CHECK(dtype == DType::kF32 || dtype == DType::kBF16, "weight of ", name_of(dtype));
  forward_ = arena.take(dtype, {packed_size(dtype, in, out)});
  if (use == Use::kForwardAndBackward) backward_ = arena.take(dtype, {packed_size(dtype, out, in)});
}

double PackedWeight::bytes() const {
  return static_cast<double>(forward_.bytes() + (backward_.empty() ? 0 : backward_.bytes()));
}

void PackWeight::check() const {
  LOCKSTEP_CHECK(packed != nullptr && !packed->forward().empty(), "[", kName, "] no packed weight");
  require(kName, "weight", weight, Types::kF32, {packed->out(), packed->in()});
}

double PackWeight::flops() const { return 0; }

double PackWeight::bytes() const { return static_cast<double>(weight.bytes()) + packed->bytes(); }

}  // namespace lockstep::ops
