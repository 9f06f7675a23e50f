#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/file.h"
#include "model/model.h"
#include "ops/machine_peak.h"
#include "train/metrics.h"
#include "train/recipe.h"
#include "train/run_start.h"

namespace lockstep {

// Something that a run does every `interval` steps, after the step's checkpoint is durable, without
// changing a bit of the run: a held-out evaluation, a sampled continuation. What it returns goes
// into events.jsonl. `stopping` turns true when the run was asked to stop; then it should return
// soon.
struct PeriodicTask {
  std::string name;
  std::int64_t interval = 0;
  std::function<OrderedJson(Model& model, std::int64_t step, const std::function<bool()>& stopping)>
      run;
};

struct TrainProgress {
  std::int64_t last_step = 0;  // at which the run ends
  double seconds_left = 0;     // by the mean of the latest steps
};

// What the command line does with a run's news.
struct TrainObserver {
  Say say;
  std::function<void(const StepRecord&, const TrainProgress&)> step;
};

struct TrainSummary {
  std::string directory;
  std::int64_t first_step = 0;  // that this process trained; 0: none was left to train
  std::int64_t last_step = 0;
  std::int64_t tokens = 0;
  std::int64_t skipped_total = 0;
  double loss = 0;  // of the last step
  double seconds = 0;
  double overhead_seconds = 0;  // waiting for data and for snapshots
  double tokens_per_s = 0;      // mean over this process's steps
  double mfu = 0;
  int stop_signal = 0;  // 0: the run is done
  OrderedJson replay;   // null when nothing was trained again
  ops::MachinePeak peak;
};

// Trains the recipe's run to its last step, from the start or from where it was left. One process a
// run directory. Throws Error: kConfig a recipe that is not the run's, kInput a locked run, kData
// damaged data or checkpoints, kNumeric too many skipped steps in a row or weights that are not
// finite (the checkpoints before stay), kIo what the system refused. On a first SIGTERM, SIGINT or
// SIGHUP it saves at the next step boundary and returns with stop_signal set.
[[nodiscard]] TrainSummary train(FileSystem& fs, const Recipe& recipe,
                                 const std::vector<PeriodicTask>& tasks,
                                 const TrainObserver& observer);

}  // namespace lockstep
