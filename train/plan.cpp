#include "train/plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "model/activations.h"
#include "model/rope_table.h"
#include "model/training_scratch.h"
#include "model/weights.h"
#include "parallel/leaf_tree.h"

namespace lockstep {
namespace {

constexpr std::int64_t kFloat = 4;
// Code, libraries, stacks and what the C library keeps: 7 MiB as measured with recipes/demo.toml,
// and some room.
constexpr std::int64_t kProgramBytes = std::int64_t{12} << 20U;
// Epoch boundaries shown of one stage; the last one is always shown.
constexpr std::int64_t kMaxEpochs = 8;

// Steps worth showing, with every name that falls on them.
class Points {
 public:
  Points(std::int64_t first, std::int64_t last) : first_(first), last_(last) {}

  void add(std::int64_t step, const std::string& what) {
    if (step < first_ || step > last_) return;
    std::string& text = named_[step];
    text += (text.empty() ? "" : ", ") + what;
  }
  [[nodiscard]] const std::map<std::int64_t, std::string>& named() const { return named_; }

 private:
  std::int64_t first_;
  std::int64_t last_;
  std::map<std::int64_t, std::string> named_;
};

void add_epochs(const Recipe& recipe, std::int64_t instances, std::int64_t last, Points& points) {
  const std::int64_t per_epoch = recipe.steps_per_epoch(instances);
  const std::int64_t epochs = (last + per_epoch - 1) / per_epoch;
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    if (epoch > kMaxEpochs && epoch != epochs) continue;
    if (epoch > 1) points.add((epoch - 1) * per_epoch + 1, concat("epoch ", epoch, " begins"));
    points.add(epoch * per_epoch, concat("epoch ", epoch, " ends"));
  }
}

// Batches made ahead, the one in use and the one being made: tokens, targets and segments.
std::int64_t loader_bytes(const Recipe& recipe) {
  constexpr std::int64_t kId = 4;
  return (recipe.data.prefetch + 2) * recipe.tokens_per_step() * 3 * kId;
}

std::int64_t kept_checkpoints(const CheckpointConfig& config, std::int64_t last_step) {
  std::set<std::int64_t> saved = {last_step};
  // More than this many would not fit anywhere; the sum only has to say so.
  constexpr std::int64_t kMany = 1000000;
  if (config.interval > 0) {
    const std::int64_t count = std::min(last_step / config.interval, kMany);
    for (std::int64_t i = 1; i <= count; ++i) saved.insert(i * config.interval);
  }
  for (const std::int64_t step : config.also_at) {
    if (step <= last_step) saved.insert(step);
  }
  std::int64_t kept = 0;
  std::int64_t newest = 0;
  for (auto step = saved.rbegin(); step != saved.rend(); ++step) {
    const bool also = std::count(config.also_at.begin(), config.also_at.end(), *step) > 0;
    const bool every = config.keep_every > 0 && *step % config.keep_every == 0;
    const bool last = config.keep_last == 0 || newest < config.keep_last;
    ++newest;
    if (also || every || last) ++kept;
  }
  return kept;
}

std::vector<PresetCount> all_presets() {
  std::vector<PresetCount> counts;
  for (const auto& entry : enum_table(Preset{})) {
    if (entry.value == Preset::kCustom) continue;
    ModelConfig config;
    config.preset = entry.value;
    config.apply_preset();
    const ParameterCounts parameters = parameter_counts(config, config.vocab_rows());
    counts.push_back({entry.value, parameters.total(), parameters.non_embedding()});
  }
  return counts;
}

}  // namespace

DataPosition data_position(const Recipe& recipe, std::int64_t step,
                           std::optional<std::int64_t> instances) {
  LOCKSTEP_CHECK(step >= 1, "step ", step);
  const std::int64_t batch = recipe.instances_per_step();
  DataPosition position{.entries_before = (step - 1) * batch};
  if (!instances) return position;
  const std::int64_t per_epoch = recipe.steps_per_epoch(*instances);
  position.epoch = 1 + (step - 1) / per_epoch;
  position.step_in_epoch = (step - 1) % per_epoch;
  position.first_entry = *position.step_in_epoch * batch;
  return position;
}

StagePlan plan_stage(const Recipe& recipe, std::optional<std::int64_t> instances) {
  StagePlan stage{.name = recipe.run.name,
                  .last_step = recipe.last_step(instances),
                  .tokens_per_step = recipe.tokens_per_step(),
                  .instances = instances ? instances : recipe.data.instances,
                  .schedule = recipe.lr_schedule(instances),
                  .continues = recipe.init.continue_step,
                  .points = {}};
  // Which step a run's newest checkpoint holds is not known before it is opened.
  if (stage.continues) stage.first_step = recipe.init.step.value_or(0) + 1;
  if (stage.first_step > stage.last_step) {
    fail(ErrorKind::kConfig, "init.step = ", stage.first_step - 1, ": nothing is left to train, ",
         recipe.run.name, " ends at step ", stage.last_step);
  }
  stage.tokens = static_cast<double>(stage.last_step) * static_cast<double>(stage.tokens_per_step);

  Points points(stage.first_step, stage.last_step);
  points.add(stage.first_step, stage.continues ? "first step after the checkpoint" : "first step");
  if (stage.schedule.warmup > 0) points.add(stage.schedule.warmup, "warm-up ends");
  const std::int64_t decay_start = stage.schedule.horizon - stage.schedule.decay;
  if (stage.schedule.decay > 0) points.add(decay_start, "decay begins");
  points.add(stage.schedule.horizon, "schedule ends");
  points.add(stage.first_step + (stage.last_step - stage.first_step) / 2, "half way");
  for (const std::int64_t step : recipe.checkpoint.also_at) points.add(step, "kept checkpoint");
  if (stage.instances) add_epochs(recipe, *stage.instances, stage.last_step, points);
  points.add(stage.last_step, "last step");
  for (const auto& [step, what] : points.named()) {
    stage.points.push_back(
        {step, what, stage.schedule.lr(step), data_position(recipe, step, stage.instances)});
  }
  return stage;
}

std::int64_t MemoryPlan::total() const {
  std::int64_t sum = 0;
  for (const MemoryClass& each : classes) sum += each.in_memory ? each.bytes : 0;
  return sum;
}

std::int64_t MemoryPlan::step_total() const {
  std::int64_t sum = 0;
  for (const MemoryClass& each : classes) sum += each.of_step && each.in_memory ? each.bytes : 0;
  return sum;
}

MemoryPlan plan_memory(const Recipe& recipe, std::int64_t last_step, Isa isa) {
  const ModelConfig& model = recipe.model;
  const Precision precision = recipe.train.precision;
  const LeafShape leaf{recipe.batch.microbatch, recipe.data.sequence_length};
  const std::int64_t floats = ParameterTable(model).size();
  const std::int64_t state = 3 * floats * kFloat;
  const int threads = recipe.cpu.thread_count();
  const auto accumulate =
      recipe.leaves_per_step() > 1 ? ops::Accumulate::kAdd : ops::Accumulate::kOverwrite;

  const bool in_memory = recipe.train.offload == Offload::kNone;
  MemoryPlan plan;
  for (const auto& entry : enum_table(Remat{})) {
    plan.activations.push_back(
        {entry.name, activation_bytes(model, leaf, Pass::kTraining, entry.value, precision)});
  }
  const auto policy = static_cast<std::size_t>(recipe.train.remat);
  plan.classes = {
      {"weights, fp32 master", floats * kFloat},
      {concat("weights, ", to_name(precision), " for products"),
       Weights::packed_bytes(model, precision, Weights::Use::kForwardAndBackward, isa)},
      {"moments, fp32", 2 * floats * kFloat, true, in_memory},
      {concat("gradients, ", LeafTree::buffers(recipe.leaves_per_step()), " held by the leaf tree"),
       LeafTree::buffers(recipe.leaves_per_step()) * floats * kFloat},
      {concat("activations of a leaf, remat ", to_name(recipe.train.remat)),
       plan.activations[policy].bytes},
      {"kernel scratch", training_scratch_bytes(model, leaf, precision, accumulate, isa, threads)},
      {"rotary tables", RopeTable::bytes(model, recipe.data.sequence_length)},
      {"program", kProgramBytes},
      {"batches made ahead", loader_bytes(recipe), false},
      {"checkpoint staging", state, false, in_memory},
  };
  plan.checkpoint_bytes = state;
  plan.disk_bytes = state * kept_checkpoints(recipe.checkpoint, last_step);
  return plan;
}

Plan make_plan(const PlanInput& input) {
  const Recipe& recipe = input.recipe;
  const StagePlan own = plan_stage(recipe, input.instances);
  Plan plan{.recipe = recipe,
            .parameters = parameter_counts(recipe.model, recipe.model.vocab_rows()),
            .published_parameters = parameter_counts(recipe.model, recipe.model.vocab_size).total(),
            .first_step = own.first_step,
            .last_step = own.last_step,
            .step_flops = instance_flops(recipe.model, recipe.data.sequence_length),
            .stages = {},
            .memory = plan_memory(recipe, own.last_step, input.isa),
            .presets = all_presets()};
  const auto batch = static_cast<double>(recipe.instances_per_step());
  for (double* flops :
       {&plan.step_flops.maxtext, &plan.step_flops.olmo_core, &plan.step_flops.window_exact}) {
    *flops *= batch;
  }
  for (const Recipe& stage : input.stages) {
    plan.stages.push_back(stage.run.name == recipe.run.name ? own : plan_stage(stage, {}));
  }
  if (plan.stages.empty()) plan.stages.push_back(own);
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    // A stage that the next one counts on from is counted there.
    if (i + 1 < plan.stages.size() && plan.stages[i + 1].continues) continue;
    plan.training_steps += plan.stages[i].last_step;
    plan.training_tokens += plan.stages[i].tokens;
  }
  return plan;
}

std::vector<Recipe> read_stages(const std::string& recipe_path, const Recipe& recipe) {
  std::vector<Recipe> stages;
  bool found = false;
  for (const std::string& name : recipe.run.stages) {
    const std::filesystem::path path = std::filesystem::path(recipe_path).parent_path() / name;
    Recipe stage = read_recipe(path.string());
    const bool own = stage.run.name == recipe.run.name;
    found = found || own;
    stages.push_back(own ? recipe : std::move(stage));
  }
  if (!stages.empty() && !found) {
    fail(ErrorKind::kConfig, "run.stages: none of its recipes is called '", recipe.run.name,
         "', as this one is; list it too, or unset run.stages for a run of its own");
  }
  return stages;
}

}  // namespace lockstep
