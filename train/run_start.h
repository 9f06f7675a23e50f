#pragma once

#include <functional>
#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"
#include "io/file.h"
#include "train/event_log.h"
#include "train/recipe.h"

namespace lockstep {

using Say = std::function<void(const std::string& line)>;

enum class StartKind {
  kFresh,   // fresh weights, step 0
  kFrom,    // init.from: another run's weights
  kResume,  // this run's newest whole checkpoint
};

// Where a run goes on from.
struct RunStart {
  StartKind kind = StartKind::kFresh;
  std::unique_ptr<CheckpointReader>
      checkpoint;            // null for kFresh, and for a Hugging Face directory
  std::string hf_directory;  // kFrom a Hugging Face directory
};

// Makes or checks the run's directory (whose lock the caller holds) and finds out where the run
// goes on from: removes what an unfinished save left, refuses a recipe that differs from the run's
// (kConfig, listing the differences) unless run.fork_from says that it shall, falls back past
// damaged checkpoints with a warning through `say`, and writes recipe.toml.
//
// A fork keeps everything: later checkpoints are renamed step-N.before-fork-S, the recipe
// recipe.before-fork-S.toml, and the event is recorded.
[[nodiscard]] RunStart open_run(FileSystem& fs, const Recipe& recipe, EventLog& events,
                                const Say& say);

}  // namespace lockstep
