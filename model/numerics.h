#pragma once

#include <array>

#include "base/dtype.h"
#include "config/enum_name.h"

namespace lockstep {

// fp32: everything in fp32. bf16: weights and activations are rounded to bf16 for matrix products,
// which accumulate in fp32; norms, softmax, loss, the residual stream and its gradient are fp32.
enum class Precision { kFp32, kBf16 };
constexpr auto enum_table(Precision) {
  return std::array{EnumName{Precision::kFp32, "fp32"}, EnumName{Precision::kBf16, "bf16"}};
}

// What a block's backward computes again instead of having kept it (activations.h). The policy
// changes memory and time, never a bit of the result.
enum class Remat { kNone, kMlp, kAttention, kFull };
constexpr auto enum_table(Remat) {
  return std::array{EnumName{Remat::kNone, "none"}, EnumName{Remat::kMlp, "mlp"},
                    EnumName{Remat::kAttention, "attention"}, EnumName{Remat::kFull, "full"}};
}

// The dtype of a product's operands and result.
[[nodiscard]] constexpr DType product_dtype(Precision precision) {
  return precision == Precision::kFp32 ? DType::kF32 : DType::kBF16;
}

}  // namespace lockstep
