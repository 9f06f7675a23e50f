#pragma once

#include <string>
#include <vector>

#include "io/file.h"
#include "report/ablation.h"

// DIR/ablation.json (docs/formats.md, "Ablation").
namespace lockstep {

inline constexpr const char* kAblationFile = "ablation.json";

struct AblationFile {
  std::string recipe;  // the file that the variants were made from
  bool finished = false;
  std::string machine;  // in words
  Ablation ablation;    // without measurements until finished: labels, directories, block, steps
};

[[nodiscard]] std::string to_json_text(const AblationFile& file);
// kInput when there is no such file; kData naming file and key when it is damaged or of another
// version.
[[nodiscard]] AblationFile read_ablation(FileSystem& fs, const std::string& path);

// kConfig when `wanted` is not the ablation that `found` began: other variants, block or steps.
void require_same_ablation(const AblationFile& found, const AblationFile& wanted,
                           const std::string& path);

}  // namespace lockstep
