#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "ops/cpu/by_isa.h"

// The passes of the head's loss over one row of one tile of logits, once per instruction set.
namespace lockstep::ops {

struct RowStatistics {
  float max;  // of the logits; any of them where one is NaN (then the sum is NaN)
  float sum;  // of exp(logit - max), in 16 lanes and then across them
};

// e = exp(logit - max) is between 0 and 1, so the sign and the highest bit of the exponent of its
// fp32 are 0: 16 bits hold it with 9 bits of fraction, rounded to nearest even, 4 times as fine as
// bf16, so that the gradient's own rounding to bf16 is the one that counts.
inline constexpr int kCompactShift = 14;

struct HeadLossKernels {
  RowStatistics (*statistics)(const float* logits, std::int64_t n);
  // The same, and e: as f32, or compact.
  RowStatistics (*exponentials)(float* e, const float* logits, std::int64_t n);
  RowStatistics (*compact_exponentials)(std::uint16_t* e, const float* logits, std::int64_t n);
  // The first index whose logit equals value; n if there is none.
  std::int64_t (*first_of)(const float* logits, std::int64_t n, float value);
  // e becomes factor * e, less `target` at index `at` (none if negative), rounded once at the end.
  void (*gradient)(float* e, std::int64_t n, float factor, std::int64_t at, float target);
  void (*compact_gradient)(void* e, std::int64_t n, float factor, std::int64_t at, float target);
};

// No use for bf16 instructions: one set of AVX-512 kernels.
LOCKSTEP_FOR_EACH_ISA(extern const HeadLossKernels head_loss_kernels;)

}  // namespace lockstep::ops
