#pragma once

#include <memory>
#include <string>

#include "data/fixed_instances.h"
#include "data/index.h"
#include "data/loader.h"
#include "data/step_plan.h"
#include "io/file.h"
#include "train/recipe.h"

namespace lockstep {

// What a recipe's [data] and [batch] name, opened: the index of its token files and the plan that
// says which instances a step sees. `fs` must outlive it. Thread-safe once made.
class TrainingData {
 public:
  // The index is saved in the cache directory (data.cache_dir, else the run's directory) and
  // checked against the files at every later start. Errors as read_mix, open_index, StepPlan;
  // kConfig when the recipe names no data.
  TrainingData(FileSystem& fs, const Recipe& recipe, ThreadPool& pool);

  [[nodiscard]] const DataIndex& index() const { return *index_; }
  [[nodiscard]] const InstanceSource& source() const { return *source_; }
  [[nodiscard]] const StepPlan& plan() const { return *plan_; }
  [[nodiscard]] std::unique_ptr<Loader> loader(std::int64_t first_batch) const;

 private:
  LoaderOptions options_;
  std::unique_ptr<DataIndex> index_;
  std::unique_ptr<InstanceSource> source_;
  std::unique_ptr<StepPlan> plan_;
};

}  // namespace lockstep
