#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace lockstep {

// One token file of a mix. The order of the entries is the global order of the instances.
struct MixEntry {
  std::string label;
  std::string path;  // relative to the mix's base directory, {TOKENIZER} expanded
};

// A manifest: lines `label,path`; blank lines and lines that start with # do not count; {TOKENIZER}
// in a path becomes `tokenizer` (such as "allenai/dolma3-tokenizer"). kInput naming `what` and the
// line for a line without both parts, an absolute path or one with "..", a file listed twice (its
// instances would be seen twice an epoch), {TOKENIZER} with no name to put there, or no file at
// all.
[[nodiscard]] std::vector<MixEntry> parse_mix(std::string_view text, std::string_view what,
                                              std::string_view tokenizer);
[[nodiscard]] std::vector<MixEntry> read_mix(FileSystem& fs, const std::string& path,
                                             std::string_view tokenizer);

}  // namespace lockstep
