#include "ops/adamw.h"

#include "ops/cpu/adamw_kernels.h"
#include "ops/cpu/packed_weight.h"
#include "ops/cpu/rows.h"

namespace lockstep::ops {

void enqueue(CpuStream& stream, const AdamWStep& op) {
  const AdamWKernels& kernels =
      *by_isa(stream.isa(), &portable::adamw_kernels, &avx2::adamw_kernels, &avx512::adamw_kernels,
              &avx512::adamw_kernels);
  // 1 - beta is rounded once: from beta as a double, as the reference does.
  const AdamWScalars scalars = {.decay = op.decay,
                                .one_minus_beta1 = static_cast<float>(1 - op.beta1),
                                .beta2 = static_cast<float>(op.beta2),
                                .one_minus_beta2 = static_cast<float>(1 - op.beta2),
                                .step_size = op.step_size,
                                .inv_sqrt_correction = op.inv_sqrt_correction,
                                .eps = op.eps,
                                .grad_scale = op.grad_scale};
  auto* p = op.p.data<float>();
  auto* m = op.m.data<float>();
  auto* v = op.v.data<float>();
  const auto* g = op.g.data<float>();
  const auto step = [&](std::int64_t begin, std::int64_t end) {
    kernels.step(p + begin, m + begin, v + begin, g + begin, end - begin, scalars);
  };
  if (op.packed == nullptr) {
    for_pieces(stream, op.p.size(), kPieceElements, step);
  } else {
    pack_weight(stream, *op.packed, p, step);
  }
}

}  // namespace lockstep::ops
