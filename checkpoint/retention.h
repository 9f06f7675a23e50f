#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/file.h"

namespace lockstep {

struct Retention {
  std::int64_t keep_last = 0;   // the newest n; 0 keeps all
  std::int64_t keep_every = 0;  // and every step that is a multiple of it; 0: none for that reason
  std::vector<std::int64_t> keep_steps = {};  // and these
};

// Which of the steps may go: those that neither rule keeps, never the newest and never `in_use`
// (the one resumed from; -1 for none). Pure.
[[nodiscard]] std::vector<std::int64_t> removable_checkpoints(std::vector<std::int64_t> steps,
                                                              const Retention& retention,
                                                              std::int64_t in_use);

// Removes them, each renamed to a .tmp name first, so that a crash leaves nothing that looks whole.
// Call only after the newest checkpoint is durable. Returns the steps removed.
std::vector<std::int64_t> apply_retention(FileSystem& fs, const std::string& checkpoints,
                                          const Retention& retention, std::int64_t in_use);

// Removes what saves and removals that did not finish left behind. Only the holder of the run's
// lock may call it. Returns the names.
std::vector<std::string> remove_unfinished(FileSystem& fs, const std::string& checkpoints);

}  // namespace lockstep
