#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/compare.h"
#include "model/config.h"
#include "optim/config.h"
#include "optim/schedule.h"
#include "train/recipe_sections.h"
#include "train/service_sections.h"

namespace lockstep {

// A whole run, as a TOML file describes it. With the data it decides every bit of every step; keys
// marked benign do not, and may change on resume. Read it with read_recipe, then leave it alone.
struct Recipe {
  RunConfig run;
  ModelConfig model;
  DataConfig data;
  BatchConfig batch;
  TrainConfig train;
  OptimConfig optim;
  ScheduleConfig schedule;
  StartConfig init;
  CheckpointConfig checkpoint;
  EvalConfig eval;
  SampleConfig sample;
  MetricsConfig metrics;
  CpuConfig cpu;
  ProfileConfig profile;

  template <class V>
  void fields(V&& v) {
    v("run", run, "The run and where it is kept.");
    v("model", model, "The architecture.");
    v("data", data, "What is trained on and in which order.");
    v("batch", batch, "How much of it a step takes.");
    v("train", train, "How long and with which numerics.");
    v("optim", optim, "AdamW.");
    v("schedule", schedule, "The learning rate by step.");
    v("init", init, "Where the weights come from.");
    v("checkpoint", checkpoint, "When the run is saved and what is kept.", {.benign = true});
    v("eval", eval, "What is evaluated during the run.", {.benign = true});
    v("sample", sample, "Continuations of a prompt during the run.", {.benign = true});
    v("metrics", metrics, "What is written beside metrics.jsonl.", {.benign = true});
    v("cpu", cpu, "The processor.", {.benign = true});
    v("profile", profile, "Timing of single steps.", {.benign = true});
  }
  // Every section's rules and those between sections. Throws kConfig.
  void validate() const;

  [[nodiscard]] std::string directory() const;            // run.dir or runs/NAME
  [[nodiscard]] std::int64_t instances_per_step() const;  // B
  [[nodiscard]] std::int64_t tokens_per_step() const;     // B * sequence_length
  [[nodiscard]] std::int64_t leaves_per_step() const;     // B / microbatch
  // floor(N / B). Throws kConfig when that is 0.
  [[nodiscard]] std::int64_t steps_per_epoch(std::int64_t instances) const;

  // The run's length in steps, and the step at which it really ends (train.stop_at). `instances`
  // are those of one epoch where known, else data.instances; only a length in epochs needs them:
  // kConfig when they are then unknown.
  [[nodiscard]] std::int64_t run_steps(std::optional<std::int64_t> instances = {}) const;
  [[nodiscard]] std::int64_t last_step(std::optional<std::int64_t> instances = {}) const;
  [[nodiscard]] Schedule lr_schedule(std::optional<std::int64_t> instances = {}) const;
  // True for a step that train.steps_to_skip passes over; steps count from 1.
  [[nodiscard]] bool passes_over(std::int64_t step) const;
  // True for a step after which the run is saved, its end aside.
  [[nodiscard]] bool saves_at(std::int64_t step) const;
};

// A recipe file with overrides ("a.b=value") on top, validated. Errors as read.h.
[[nodiscard]] Recipe read_recipe(const std::string& path,
                                 std::span<const std::string> overrides = {});
[[nodiscard]] Recipe parse_recipe(std::string_view toml, std::string_view file,
                                  std::span<const std::string> overrides = {});

// What a resume finds changed: `saved` is the run's recipe.toml. Besides the keys that are benign
// everywhere, the run's length is benign when the learning rate does not depend on it, that is when
// the schedule's own horizon is given or it is flat. Anything else must be refused or forked.
[[nodiscard]] std::vector<Difference> resume_differences(const Recipe& saved, const Recipe& wanted);

}  // namespace lockstep
