#include "ops/adamw.h"

#include "base/error.h"
#include "ops/contract.h"

namespace lockstep::ops {

void AdamWStep::check() const {
  require_rank(kName, "p", p, 1);
  require(kName, "p", p, Types::kF32, {p.dim(0)});
  require(kName, "m", m, Types::kF32, {p.dim(0)});
  require(kName, "v", v, Types::kF32, {p.dim(0)});
  require(kName, "g", g, Types::kF32, {p.dim(0)});
  require_apart(kName, "p", p, "m", m);
  require_apart(kName, "p", p, "v", v);
  require_apart(kName, "p", p, "g", g);
  require_apart(kName, "m", m, "v", v);
  require_apart(kName, "m", m, "g", g);
  require_apart(kName, "v", v, "g", g);
  if (packed == nullptr) return;
  LOCKSTEP_CHECK(packed->out() * packed->in() == p.size(), "[", kName, "] p of ", p.size(),
                 " elements, packed weight [", packed->out(), ", ", packed->in(), "]");
}

double AdamWStep::flops() const { return 14 * static_cast<double>(p.size()); }
double AdamWStep::bytes() const {
  return 7 * static_cast<double>(p.bytes()) + (packed == nullptr ? 0 : packed->bytes());
}

}  // namespace lockstep::ops
