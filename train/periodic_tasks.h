#pragma once

#include <vector>

#include "train/trainer.h"

namespace lockstep {

// The tasks that a recipe's [eval] and [sample] ask for: the evaluation of its surfaces, written to
// RUN/evals/step-N.json too, and a sampled continuation of the prompt. Their files are opened and
// checked here, before the run starts: kConfig when a key that they need is not set, kInput and
// kData for the files. `fs` must outlive the tasks; `say` is where results are told.
[[nodiscard]] std::vector<PeriodicTask> periodic_tasks(FileSystem& fs, const Recipe& recipe,
                                                       const Say& say);

}  // namespace lockstep
