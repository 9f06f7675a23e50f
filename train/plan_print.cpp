#include <algorithm>
#include <array>
#include <cstdio>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "config/print.h"
#include "train/plan.h"

namespace lockstep {
namespace {

template <class T>
OrderedJson json_of(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson json_of(const PlanPoint& point) {
  return {{"step", point.step},
          {"what", point.what},
          {"lr", point.lr},
          {"instances_before", point.position.entries_before},
          {"epoch", json_of(point.position.epoch)},
          {"step_in_epoch", json_of(point.position.step_in_epoch)},
          {"first_entry", json_of(point.position.first_entry)}};
}

OrderedJson json_of(const StagePlan& stage) {
  OrderedJson points = OrderedJson::array();
  for (const PlanPoint& point : stage.points) points.push_back(json_of(point));
  return {{"name", stage.name},
          {"first_step", stage.first_step},
          {"last_step", stage.last_step},
          {"continues", stage.continues},
          {"tokens_per_step", stage.tokens_per_step},
          {"tokens", stage.tokens},
          {"instances_per_epoch", json_of(stage.instances)},
          {"schedule",
           {{"kind", to_name(stage.schedule.kind)},
            {"peak", stage.schedule.peak},
            {"warmup_steps", stage.schedule.warmup},
            {"horizon_steps", stage.schedule.horizon},
            {"decay_steps", stage.schedule.decay}}},
          {"points", points}};
}

OrderedJson json_of(const std::vector<MemoryClass>& classes) {
  OrderedJson object = OrderedJson::object();
  for (const MemoryClass& each : classes) object[each.name] = each.bytes;
  return object;
}

template <class... Args>
std::string line(const char* pattern, Args... args) {
  std::array<char, 256> buffer{};
  const int length = std::snprintf(buffer.data(), buffer.size(), pattern, args...);
  return {buffer.data(), std::min(static_cast<std::size_t>(length), buffer.size() - 1)};
}

std::string stage_text(const StagePlan& stage) {
  std::string out =
      line("%s: steps %s to %s, %s tokens a step\n", printable(stage.name).c_str(),
           with_commas(stage.first_step).c_str(), with_commas(stage.last_step).c_str(),
           with_commas(stage.tokens_per_step).c_str());
  for (const PlanPoint& point : stage.points) {
    const DataPosition& at = point.position;
    const std::string where =
        at.epoch ? concat("epoch ", *at.epoch, ", entry ", with_commas(*at.first_entry))
                 : concat("entry ", with_commas(at.entries_before), ", epoch not known");
    out += line("  step %12s  lr %.6e  %-36s %s\n", with_commas(point.step).c_str(), point.lr,
                where.c_str(), point.what.c_str());
  }
  return out;
}

std::string memory_text(const MemoryPlan& memory) {
  std::string out = "memory of a process that holds the whole model\n";
  for (const MemoryClass& each : memory.classes) {
    out += line("  %-48s %10s%s\n", each.name.c_str(),
                human_bytes(static_cast<std::uint64_t>(each.bytes)).c_str(),
                each.in_memory ? "" : " in files, not counted");
  }
  out += line("  %-48s %10s\n", "total",
              human_bytes(static_cast<std::uint64_t>(memory.total())).c_str());
  out += "  activations by rematerialisation:";
  for (const MemoryClass& each : memory.activations) {
    out += concat(each.name == memory.activations.front().name ? " " : ", ", each.name, " ",
                  human_bytes(static_cast<std::uint64_t>(each.bytes)));
  }
  return out + concat("\ndisk: ", human_bytes(static_cast<std::uint64_t>(memory.checkpoint_bytes)),
                      " a checkpoint, at most ",
                      human_bytes(static_cast<std::uint64_t>(memory.disk_bytes)), " kept\n");
}

}  // namespace

std::string plan_json(const Plan& plan) {
  OrderedJson stages = OrderedJson::array();
  for (const StagePlan& stage : plan.stages) stages.push_back(json_of(stage));
  OrderedJson presets = OrderedJson::object();
  for (const PresetCount& each : plan.presets) {
    presets[to_name(each.preset)] = {{"parameters", each.total},
                                     {"non_embedding", each.non_embedding}};
  }
  const OrderedJson json = {{"recipe", OrderedJson::parse(config_json(plan.recipe))},
                            {"fingerprint", config_fingerprint(plan.recipe)},
                            {"parameters",
                             {{"total", plan.parameters.total()},
                              {"non_embedding", plan.parameters.non_embedding()},
                              {"embedding", plan.parameters.embedding},
                              {"layers", plan.parameters.layers},
                              {"head", plan.parameters.head},
                              {"published", plan.published_parameters}}},
                            {"first_step", plan.first_step},
                            {"last_step", plan.last_step},
                            {"tokens_per_step", plan.recipe.tokens_per_step()},
                            {"leaves_per_step", plan.recipe.leaves_per_step()},
                            {"step_flops",
                             {{"maxtext", plan.step_flops.maxtext},
                              {"olmo_core", plan.step_flops.olmo_core},
                              {"window_exact", plan.step_flops.window_exact}}},
                            {"stages", stages},
                            {"training_steps", plan.training_steps},
                            {"training_tokens", plan.training_tokens},
                            {"memory",
                             {{"classes", json_of(plan.memory.classes)},
                              {"total", plan.memory.total()},
                              {"activations_by_remat", json_of(plan.memory.activations)},
                              {"checkpoint_bytes", plan.memory.checkpoint_bytes},
                              {"disk_bytes", plan.memory.disk_bytes}}},
                            {"presets", presets}};
  return json.dump(2);
}

std::string plan_text(const Plan& plan) {
  const ParameterCounts& p = plan.parameters;
  std::string out =
      concat("parameters: ", with_commas(p.total()), " (", with_commas(p.non_embedding()),
             " without the input embedding; ", with_commas(plan.published_parameters),
             " as published, without padded rows)\n");
  out += concat("steps: ", with_commas(plan.first_step), " to ", with_commas(plan.last_step), ", ",
                with_commas(plan.recipe.instances_per_step()), " instances in ",
                with_commas(plan.recipe.leaves_per_step()), " leaves, ",
                with_commas(plan.recipe.tokens_per_step()), " tokens each\n");
  out += line("FLOPs a step: %.6g window-exact, %.6g by MaxText's formula, %.6g by OLMo-core's\n",
              plan.step_flops.window_exact, plan.step_flops.maxtext, plan.step_flops.olmo_core);
  out += "\n";
  for (const StagePlan& stage : plan.stages) out += stage_text(stage);
  out += concat("whole training: ", with_commas(plan.training_steps), " steps, ",
                human_count(plan.training_tokens), " tokens\n\n");
  out += memory_text(plan.memory);
  out += "\nparameters of every preset (without the input embedding)\n";
  for (const PresetCount& each : plan.presets) {
    out += line("  %-12s %15s (%s)\n", to_name(each.preset), with_commas(each.total).c_str(),
                with_commas(each.non_embedding).c_str());
  }
  return out;
}

}  // namespace lockstep
