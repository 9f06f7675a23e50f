#pragma once

#include <cstdint>
#include <optional>

#include "io/file.h"

namespace lockstep {

// A one-dimensional little-endian unsigned array in NumPy's .npy format (numpy.lib.format, versions
// 1.0, 2.0 and 3.0).
struct NpyHeader {
  std::uint64_t payload_offset = 0;  // bytes before the first element
  std::uint64_t element_bytes = 0;   // 2 ('<u2') or 4 ('<u4')
  std::uint64_t elements = 0;
};

// Empty when the file does not start with NumPy's magic: then it is headerless. With the magic, the
// header must be whole and be '<u2' or '<u4', C order, one dimension (kInput otherwise), and the
// file must hold exactly that many elements (kData).
[[nodiscard]] std::optional<NpyHeader> parse_npy_header(const InputFile& file);

}  // namespace lockstep
