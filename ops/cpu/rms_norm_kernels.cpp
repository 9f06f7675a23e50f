#include "ops/cpu/rms_norm_kernels.h"

#include "ops/cpu/norm_row.h"
#include "ops/cpu/simd.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

template <class Y, class X>
void forward(const RmsNormForwardRows& rows, std::int64_t begin, std::int64_t end) {
  const float* weight = rows.weight;
  for (std::int64_t row = begin; row < end; ++row) {
    Y* y = static_cast<Y*>(rows.y) + row * rows.width;
    const X* x = static_cast<const X*>(rows.x) + row * rows.x_stride;
    const float rstd = rstd_of_row(x, rows.width, rows.eps);
    rows.rstd[row] = rstd;
    const F32x16 scale = splat(rstd);
    for_lanes(rows.width, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
      store(y + i, load(weight + i, lanes) * (load(x + i, lanes) * scale), lanes);
    });
  }
}

template <class Dx, class Dy, class X>
void backward(const RmsNormBackwardRows& rows, float* dweight, std::int64_t begin,
              std::int64_t end) {
  const float* weight = rows.weight;
  for (std::int64_t row = begin; row < end; ++row) {
    Dx* dx = static_cast<Dx*>(rows.dx) + row * rows.width;
    const Dy* dy = static_cast<const Dy*>(rows.dy) + row * rows.width;
    const X* x = static_cast<const X*>(rows.x) + row * rows.x_stride;
    const float rstd = rows.rstd[row];
    const float sum = sum_lanes(rows.width, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
      fetch_ahead(dy + i);
      fetch_ahead(x + i);
      return load(weight + i, lanes) * load(dy + i, lanes) * load(x + i, lanes);
    });
    const F32x16 scale = splat(rstd);
    const F32x16 slope = splat(sum / static_cast<float>(rows.width) * rstd * rstd);
    for_lanes(rows.width, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
      const F32x16 grad = load(dy + i, lanes);
      const F32x16 value = load(x + i, lanes);
      store(dx + i, scale * (load(weight + i, lanes) * grad - value * slope), lanes);
      store(dweight + i, load(dweight + i, lanes) + grad * (value * scale), lanes);
    });
  }
}

template <class A>
void norm_residual(const NormResidualRows& rows, std::int64_t begin, std::int64_t end) {
  const float* weight = rows.weight;
  for (std::int64_t row = begin; row < end; ++row) {
    const A* a = static_cast<const A*>(rows.a) + row * rows.width;
    const float* x = rows.x + row * rows.width;
    float* h = rows.h + row * rows.width;
    const float rstd = rstd_of_row(a, rows.width, rows.eps);
    rows.rstd[row] = rstd;
    const F32x16 scale = splat(rstd);
    const auto sum = [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
      return load(x + i, lanes) + load(weight + i, lanes) * (load(a + i, lanes) * scale);
    };
    if (rows.h_rounded == nullptr) {
      for_lanes(rows.width, [&](std::int64_t i, auto lanes)
                                LOCKSTEP_LAMBDA { store(h + i, sum(i, lanes), lanes); });
      continue;
    }
    bf16* rounded = static_cast<bf16*>(rows.h_rounded) + row * rows.width;
    for_lanes(rows.width, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
      const F32x16 value = sum(i, lanes);
      store(h + i, value, lanes);
      store(rounded + i, value, lanes);
    });
  }
}

}  // namespace

const RmsNormKernels rms_norm_kernels = {
    .forward = {{forward<float, float>, forward<float, bf16>},
                {forward<bf16, float>, forward<bf16, bf16>}},
    .backward = {{{backward<float, float, float>, backward<float, float, bf16>},
                  {backward<float, bf16, float>, backward<float, bf16, bf16>}},
                 {{backward<bf16, float, float>, backward<bf16, float, bf16>},
                  {backward<bf16, bf16, float>, backward<bf16, bf16, bf16>}}},
    .norm_residual = {norm_residual<float>, norm_residual<bf16>}};

}  // namespace lockstep::ops::LOCKSTEP_ISA
