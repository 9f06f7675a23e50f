#pragma once

#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep::ops {

// y = a + b. y may alias either.
struct Add {
  static constexpr const char* kName = "add";
  View y;  // out (n) f32
  View a;  // in  (n) f32
  View b;  // in  (n) f32
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// y = x in y's dtype, f32 to bf16 rounding to nearest even.
struct Cast {
  static constexpr const char* kName = "cast";
  View y;  // out, f32|bf16; rows may be strided
  View x;  // in, same shape, f32|bf16; rows may be strided
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

// sum of x^2 in fp64: partial sums over fixed chunks, the chunks added in order. A NaN or an
// infinity in x makes the result non-finite.
struct SumOfSquares {
  static constexpr const char* kName = "sum_of_squares";
  double* sum;  // out
  View x;       // in (n) f32
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

void enqueue(CpuStream& stream, const Add& op);
void enqueue(CpuStream& stream, const Cast& op);
void enqueue(CpuStream& stream, const SumOfSquares& op);

}  // namespace lockstep::ops
