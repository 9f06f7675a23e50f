#include "ops/cpu/qk_norm_rope_kernels.h"

#include "ops/cpu/norm_row.h"
#include "ops/cpu/simd.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

template <class Y, class X>
void forward(const QkNormRopeForwardRows& rows, std::int64_t begin, std::int64_t end) {
  const std::int64_t half = rows.half;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t b = row / rows.positions;
    const std::int64_t t = row % rows.positions;
    const X* x =
        static_cast<const X*>(rows.x) + b * rows.x_rows.batch_stride + t * rows.x_rows.row_stride;
    Y* y = static_cast<Y*>(rows.y) + b * rows.y_rows.batch_stride + t * rows.y_rows.row_stride;
    const float* cos = rows.cos + t * half;
    const float* sin = rows.sin + t * half;
    const float rstd = rstd_of_row(x, rows.width, rows.eps);
    rows.rstd[row] = rstd;
    const F32x16 scale = splat(rstd);
    for (std::int64_t low = 0; low < rows.width; low += 2 * half) {
      for_lanes(half, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
        const std::int64_t at = low + i;
        const F32x16 z_low = load(rows.weight + at, lanes) * (load(x + at, lanes) * scale);
        const F32x16 z_high =
            load(rows.weight + at + half, lanes) * (load(x + at + half, lanes) * scale);
        const F32x16 c = load(cos + i, lanes);
        const F32x16 s = load(sin + i, lanes);
        store(y + at, z_low * c - z_high * s, lanes);
        store(y + at + half, z_high * c + z_low * s, lanes);
      });
    }
  }
}

// The row's dz = rotation of dy by the opposite angle, half a head at a time.
struct Pair {
  F32x16 low;
  F32x16 high;
};
template <class Dy, class Lanes>
LOCKSTEP_INLINE Pair rotate_back(const Dy* dy, std::int64_t half, const float* cos,
                                 const float* sin, Lanes lanes) {
  const F32x16 low = load(dy, lanes);
  const F32x16 high = load(dy + half, lanes);
  const F32x16 c = load(cos, lanes);
  const F32x16 s = load(sin, lanes);
  return {low * c + high * s, high * c - low * s};
}

template <class Dx, class Dy, class X>
LOCKSTEP_INLINE void backward_row(Dx* dx, float* dweight, const Dy* dy, const X* x, float rstd,
                                  const float* cos, const float* sin,
                                  const QkNormRopeBackwardRows& rows) {
  const std::int64_t half = rows.half;
  const float* weight = rows.weight;
  F32x16 sum_low{}, sum_high{};
  for (std::int64_t low = 0; low < rows.width; low += 2 * half) {
    for_lanes(half, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
      const std::int64_t at = low + i;
      fetch_ahead(dy + at);
      fetch_ahead(dy + at + half);
      fetch_ahead(x + at);
      fetch_ahead(x + at + half);
      const Pair dz = rotate_back(dy + at, half, cos + i, sin + i, lanes);
      sum_low = sum_low + load(weight + at, lanes) * dz.low * load(x + at, lanes);
      sum_high = sum_high + load(weight + at + half, lanes) * dz.high * load(x + at + half, lanes);
    });
  }
  const float sum = hsum(sum_low + sum_high);
  const F32x16 scale = splat(rstd);
  const F32x16 slope = splat(sum / static_cast<float>(rows.width) * rstd * rstd);
  const auto finish = [&](std::int64_t at, const F32x16& dz, auto lanes) LOCKSTEP_LAMBDA {
    const F32x16 value = load(x + at, lanes);
    store(dx + at, scale * (load(weight + at, lanes) * dz - value * slope), lanes);
    store(dweight + at, load(dweight + at, lanes) + dz * (value * scale), lanes);
  };
  for (std::int64_t low = 0; low < rows.width; low += 2 * half) {
    for_lanes(half, [&](std::int64_t i, auto lanes) LOCKSTEP_LAMBDA {
      const std::int64_t at = low + i;
      const Pair dz = rotate_back(dy + at, half, cos + i, sin + i, lanes);
      finish(at, dz.low, lanes);
      finish(at + half, dz.high, lanes);
    });
  }
}

template <class Dx, class Dy, class X>
void backward(const QkNormRopeBackwardRows& rows, float* dweight, std::int64_t begin,
              std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t b = row / rows.positions;
    const std::int64_t t = row % rows.positions;
    const auto at = [&](const BatchedRows& strides) {
      return b * strides.batch_stride + t * strides.row_stride;
    };
    backward_row(static_cast<Dx*>(rows.dx) + at(rows.dx_rows), dweight,
                 static_cast<const Dy*>(rows.dy) + at(rows.dy_rows),
                 static_cast<const X*>(rows.x) + at(rows.x_rows), rows.rstd[row],
                 rows.cos + t * rows.half, rows.sin + t * rows.half, rows);
  }
}

}  // namespace

const QkNormRopeKernels qk_norm_rope_kernels = {
    .forward = {{forward<float, float>, forward<float, bf16>},
                {forward<bf16, float>, forward<bf16, bf16>}},
    .backward = {{{backward<float, float, float>, backward<float, float, bf16>},
                  {backward<float, bf16, float>, backward<float, bf16, bf16>}},
                 {{backward<bf16, float, float>, backward<bf16, float, bf16>},
                  {backward<bf16, bf16, float>, backward<bf16, bf16, bf16>}}}};

}  // namespace lockstep::ops::LOCKSTEP_ISA
