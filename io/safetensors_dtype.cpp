#include <array>

#include "base/error.h"
#include "io/safetensors.h"

namespace lockstep {
namespace {

struct Row {
  std::string_view name;
  unsigned bits;
};

// In the order of the enumerators.
constexpr std::array<Row, 20> kRows = {{
    {"BOOL", 8}, {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
    {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
    {"F32", 32}, {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
}};
static_assert(static_cast<std::size_t>(StoredDType::kU64) + 1 == kRows.size());

const Row& row(StoredDType dtype) { return kRows.at(static_cast<std::size_t>(dtype)); }

}  // namespace

std::string_view name_of(StoredDType dtype) { return row(dtype).name; }

unsigned bits_of(StoredDType dtype) { return row(dtype).bits; }

std::optional<StoredDType> stored_dtype_of_name(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<StoredDType>(i);
  }
  return std::nullopt;
}

StoredDType stored_dtype(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return StoredDType::kF32;
    case DType::kBF16:
      return StoredDType::kBF16;
    case DType::kI32:
      return StoredDType::kI32;
    case DType::kU32:
      return StoredDType::kU32;
    case DType::kI64:
      return StoredDType::kI64;
    case DType::kF64:
      return StoredDType::kF64;
  }
  fail(ErrorKind::kBug, "unknown dtype ", static_cast<int>(dtype));
}

}  // namespace lockstep
