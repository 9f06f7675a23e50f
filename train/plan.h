#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/counts.h"
#include "tensor/isa.h"
#include "train/recipe.h"

namespace lockstep {

// What a run will do and need, worked out before it starts and without its data ("the dry run").

// Where a step takes its instances: entries [first_entry, first_entry + B) of the order of `epoch`
// (from 1). When the number of instances is not known only entries_before is.
struct DataPosition {
  std::int64_t entries_before = 0;  // instances that earlier steps took, all epochs together
  std::optional<std::int64_t> epoch = std::nullopt;
  std::optional<std::int64_t> step_in_epoch = std::nullopt;  // from 0
  std::optional<std::int64_t> first_entry = std::nullopt;
};
// Of step t, counted from 1. instances: of an epoch, where known.
[[nodiscard]] DataPosition data_position(const Recipe& recipe, std::int64_t step,
                                         std::optional<std::int64_t> instances);

// One step at which something begins or ends.
struct PlanPoint {
  std::int64_t step = 0;
  std::string what;  // "first step", "warm-up ends", ...
  double lr = 0;
  DataPosition position;
};

// One recipe of a training, by itself or in a chain of stages.
struct StagePlan {
  std::string name;
  std::int64_t first_step = 1;  // 1, or the one after the checkpoint that the stage goes on from
  std::int64_t last_step = 0;
  std::int64_t tokens_per_step = 0;
  double tokens =
      0;  // of all steps up to last_step, those of a stage that it goes on from included
  std::optional<std::int64_t> instances = std::nullopt;  // of an epoch
  Schedule schedule;
  bool continues = false;         // counts on from the stage before, whose own count it replaces
  std::vector<PlanPoint> points;  // by step
};

// Memory of a process that holds the whole model, by class; on disk for checkpoints.
struct MemoryClass {
  std::string name;
  std::int64_t bytes = 0;
  bool of_step = true;    // taken by a step alone, without data, files or checkpoints
  bool in_memory = true;  // else in files that are mapped; the sums leave it out
};
struct MemoryPlan {
  std::vector<MemoryClass> classes;
  std::vector<MemoryClass> activations;  // under each rematerialisation policy
  std::int64_t checkpoint_bytes = 0;     // one checkpoint on disk
  std::int64_t disk_bytes = 0;           // all that are kept at the end of the run, at most
  [[nodiscard]] std::int64_t total() const;
  [[nodiscard]] std::int64_t step_total() const;
};

struct PresetCount {
  Preset preset = Preset::kCustom;
  std::int64_t total = 0;
  std::int64_t non_embedding = 0;
};

struct Plan {
  Recipe recipe;
  ParameterCounts parameters;             // rows padded, as trained
  std::int64_t published_parameters = 0;  // with vocab_size rows
  std::int64_t first_step = 1;
  std::int64_t last_step = 0;
  StepFlops step_flops;  // of a whole step
  std::vector<StagePlan> stages;
  std::int64_t training_steps = 0;  // of all stages
  double training_tokens = 0;
  MemoryPlan memory;
  std::vector<PresetCount> presets;
};

struct PlanInput {
  Recipe recipe;
  std::vector<Recipe> stages;  // the whole training in order; empty: the recipe alone
  std::optional<std::int64_t> instances = std::nullopt;  // of the recipe's own data, when indexed
  Isa isa = Isa::kPortable;
};
// Throws kConfig when the length of a stage depends on a number of instances that is not known.
[[nodiscard]] Plan make_plan(const PlanInput& input);

// The recipes that run.stages names, read from the folder of the recipe's own file; each is read
// without overrides but the recipe itself, found by its run.name, which stands as it is. Empty when
// run.stages is. Throws kConfig when the recipe is not among them.
[[nodiscard]] std::vector<Recipe> read_stages(const std::string& recipe_path, const Recipe& recipe);

[[nodiscard]] StagePlan plan_stage(const Recipe& recipe, std::optional<std::int64_t> instances);
// For kernels of this instruction set; recipe.cpu.threads, or all that the process may use, decide
// on a part of the scratch memory.
[[nodiscard]] MemoryPlan plan_memory(const Recipe& recipe, std::int64_t last_step, Isa isa);

[[nodiscard]] std::string plan_json(const Plan& plan);
// Several lines for people, the resolved recipe not included.
[[nodiscard]] std::string plan_text(const Plan& plan);

}  // namespace lockstep
