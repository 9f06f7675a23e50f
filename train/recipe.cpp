#include "train/recipe.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/thread_pool.h"
#include "config/read.h"
#include "tensor/isa.h"

namespace lockstep {
namespace {

bool depends_on_length(const ScheduleConfig& schedule) {
  if (schedule.horizon_steps || schedule.horizon_tokens) return false;
  const bool flat = schedule.kind == ScheduleKind::kConstant || schedule.kind == ScheduleKind::kWsd;
  const bool decays = schedule.decay_steps.value_or(0) > 0 || schedule.decay_tokens.value_or(0) > 0;
  return !flat || decays;
}

std::optional<std::int64_t> known(const Recipe& recipe, std::optional<std::int64_t> instances) {
  return instances ? instances : recipe.data.instances;
}

}  // namespace

void RunConfig::validate() const {
  const bool plain = std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (name.empty() || name == "." || name == ".." || !plain) {
    fail_key("run.name", {name}, "must name a folder: not empty, without / and control characters");
  }
}

void DataConfig::validate() const {
  if (!mix.empty() && !files.empty()) {
    fail_key("data.mix", {mix}, "give mix or files, not both; unset one with KEY=");
  }
  if (packed && !document_mask) {
    fail_key("data.packed", {packed}, "packed documents need data.document_mask = true");
  }
}

void BatchConfig::validate() const {
  if (instances && tokens) {
    fail_key("batch.tokens", {*tokens},
             "give batch.instances or batch.tokens, not both; unset one with KEY=");
  }
  if (!instances && !tokens) {
    fail(ErrorKind::kConfig, "batch: set batch.instances or batch.tokens");
  }
}

void TrainConfig::validate() const {
  const int given = (steps ? 1 : 0) + (tokens ? 1 : 0) + (epochs ? 1 : 0);
  if (given != 1) {
    fail(ErrorKind::kConfig, "train: ", given,
         " lengths given; set exactly one of train.steps, train.tokens, train.epochs (unset one "
         "with KEY=)");
  }
  for (const auto& [first, last] : steps_to_skip) {
    if (first > last) {
      fail_key("train.steps_to_skip", {first},
               concat("a range ends at ", last, " before it starts"));
    }
  }
}

void StartConfig::validate() const {
  if (!from.empty()) return;
  if (step) fail_key("init.step", {*step}, "names a checkpoint, so init.from must be set");
  if (continue_step) fail_key("init.continue_step", {true}, "needs init.from");
}

int CpuConfig::thread_count() const { return threads > 0 ? threads : ThreadPool::available_cpus(); }

Isa CpuConfig::kernel_isa() const { return isa == "auto" ? default_isa() : isa_from_name(isa); }

void CpuConfig::validate() const {
  if (isa == "auto") return;
  try {
    static_cast<void>(isa_from_name(isa));
  } catch (const Error& error) {
    fail_key("cpu.isa", {isa}, concat(error.what(), "; or auto"));
  }
}

namespace {

std::optional<std::int64_t> integer_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

void ProfileConfig::validate() const { static_cast<void>(range()); }

std::pair<std::int64_t, std::int64_t> ProfileConfig::range() const {
  if (steps.empty()) return {0, 0};
  const std::string_view text = steps;
  const std::size_t dash = text.find('-');
  const auto first = integer_of(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : integer_of(text.substr(dash + 1));
  if (!first || !last || *first < 1 || *last < *first) {
    fail_key("profile.steps", {steps}, "must be a step or a range of steps, such as \"10-12\"");
  }
  return {*first, *last};
}

void Recipe::validate() const {
  run.validate();
  model.validate();
  data.validate();
  batch.validate();
  train.validate();
  optim.validate();
  schedule.validate();
  init.validate();
  cpu.validate();
  profile.validate();
  if (batch.tokens && *batch.tokens % data.sequence_length != 0) {
    fail_key("batch.tokens", {*batch.tokens},
             concat("must be a multiple of data.sequence_length = ", data.sequence_length));
  }
  if (instances_per_step() % batch.microbatch != 0) {
    fail_key("batch.microbatch", {batch.microbatch},
             concat("must divide the batch of ", instances_per_step(), " instances"));
  }
  if (data.sequence_length > model.context_length) {
    fail_key("data.sequence_length", {data.sequence_length},
             concat("must not exceed model.context_length = ", model.context_length));
  }
  const std::int64_t max_id = data.token_type == TokenWidth::k16 ? 65535 : 4294967295;
  if (model.vocab_size - 1 > max_id) {
    fail_key("data.token_type", {std::string(to_name(data.token_type))},
             concat("cannot hold the ids of model.vocab_size = ", model.vocab_size));
  }
  // What can be said without the data must fit already.
  if (!train.epochs || data.instances) static_cast<void>(lr_schedule());
}

std::string Recipe::directory() const { return run.dir.empty() ? "runs/" + run.name : run.dir; }

std::int64_t Recipe::instances_per_step() const {
  return batch.instances ? *batch.instances : batch.tokens.value() / data.sequence_length;
}

std::int64_t Recipe::tokens_per_step() const { return instances_per_step() * data.sequence_length; }

std::int64_t Recipe::leaves_per_step() const { return instances_per_step() / batch.microbatch; }

std::int64_t Recipe::steps_per_epoch(std::int64_t instances) const {
  const std::int64_t steps = instances / instances_per_step();
  if (steps == 0) {
    fail(ErrorKind::kConfig, "batch: a step takes ", instances_per_step(),
         " instances but the data holds ", instances, "; use a smaller batch or more data");
  }
  return steps;
}

std::int64_t Recipe::run_steps(std::optional<std::int64_t> instances) const {
  if (train.steps) return *train.steps;
  if (train.tokens) return steps_for_tokens(*train.tokens, tokens_per_step());
  const std::optional<std::int64_t> count = known(*this, instances);
  if (!count) {
    fail_key("train.epochs", {train.epochs.value()},
             "the number of instances is not known before the data is indexed; set data.instances "
             "or give train.steps");
  }
  return *train.epochs * steps_per_epoch(*count);
}

std::int64_t Recipe::last_step(std::optional<std::int64_t> instances) const {
  // A stop makes the length unimportant only when it is known to come first, so both are needed.
  const std::int64_t steps = run_steps(instances);
  return train.stop_at ? std::min(*train.stop_at, steps) : steps;
}

Schedule Recipe::lr_schedule(std::optional<std::int64_t> instances) const {
  return resolve_schedule(schedule, optim.lr, tokens_per_step(), run_steps(instances));
}

bool Recipe::saves_at(std::int64_t step) const {
  const auto& also = checkpoint.also_at;
  return (checkpoint.interval > 0 && step % checkpoint.interval == 0) ||
         std::find(also.begin(), also.end(), step) != also.end();
}

bool Recipe::passes_over(std::int64_t step) const {
  return std::any_of(train.steps_to_skip.begin(), train.steps_to_skip.end(),
                     [&](const auto& range) { return range[0] <= step && step <= range[1]; });
}

Recipe read_recipe(const std::string& path, std::span<const std::string> overrides) {
  return read_config_file<Recipe>(path, overrides);
}

Recipe parse_recipe(std::string_view toml, std::string_view file,
                    std::span<const std::string> overrides) {
  return read_config<Recipe>(toml, file, overrides);
}

std::vector<Difference> resume_differences(const Recipe& saved, const Recipe& wanted) {
  std::vector<Difference> found = config_differences(saved, wanted);
  if (depends_on_length(saved.schedule) || depends_on_length(wanted.schedule)) return found;
  for (Difference& each : found) {
    if (each.path == "train.steps" || each.path == "train.tokens" || each.path == "train.epochs") {
      each.benign = true;
    }
  }
  return found;
}

}  // namespace lockstep
