#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace lockstep {

enum class DType : std::uint8_t { kF32, kBF16, kI32, kU32, kI64, kF64 };

[[nodiscard]] constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kI64:
    case DType::kF64:
      return 8;
  }
  return 0;
}

[[nodiscard]] constexpr const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kBF16:
      return "bf16";
    case DType::kI32:
      return "i32";
    case DType::kU32:
      return "u32";
    case DType::kI64:
      return "i64";
    case DType::kF64:
      return "f64";
  }
  return "?";
}

// The upper half of an IEEE fp32.
struct bf16 {
  std::uint16_t bits = 0;
  friend bool operator==(bf16, bf16) = default;
};

// Round to nearest, ties to even; a NaN stays a (quiet) NaN. The CPU's vcvtneps2bf16 rounds
// alike but flushes subnormals to zero; kernels must match this function.
[[nodiscard]] constexpr bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return {static_cast<std::uint16_t>((bits >> 16U) | 0x40U)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U)};
}

[[nodiscard]] constexpr float to_float(bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}
[[nodiscard]] constexpr float to_float(float value) { return value; }

template <class T>
inline constexpr DType kDTypeOf = DType::kF32;
template <>
inline constexpr DType kDTypeOf<bf16> = DType::kBF16;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::kI32;
template <>
inline constexpr DType kDTypeOf<std::uint32_t> = DType::kU32;
template <>
inline constexpr DType kDTypeOf<std::int64_t> = DType::kI64;
template <>
inline constexpr DType kDTypeOf<double> = DType::kF64;

}  // namespace lockstep
