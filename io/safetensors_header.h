#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/safetensors.h"

// Inside io: the two JSON texts of the format, checked in full.
namespace lockstep {

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // sorted by offset; offsets count from the start of the file
  std::map<std::string, std::string> metadata;
};

// Reads and checks the header of a .safetensors file and that its tensors tile the rest of the
// file. kData naming the file and the tensor or field. Limits: header 100,000,000 bytes, 2^17
// tensors, 64 dimensions.
[[nodiscard]] SafetensorsHeader read_safetensors_header(const InputFile& file);

// The weight_map of an index: tensor name to the name of its file, not checked further. kData when
// the text is not such an index. `name` is the index's path for messages.
[[nodiscard]] std::map<std::string, std::string> parse_weight_map(std::string_view text,
                                                                  const std::string& name);

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;
inline constexpr std::size_t kMaxTensors = std::size_t{1} << 17;
inline constexpr std::size_t kMaxRank = 64;

}  // namespace lockstep
