#include "train/ablation.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/paths.h"
#include "config/compare.h"
#include "model/counts.h"

namespace lockstep {
namespace {

// What decides which batches a step sees, and how many steps there are.
constexpr std::array<std::string_view, 8> kFixedSections = {
    "data.",        "batch.",        "train.steps", "train.tokens",
    "train.epochs", "train.stop_at", "run.",        "model.vocab_size"};

std::string label_of(const std::vector<std::string>& overrides) {
  std::string label;
  for (const auto& text : overrides) label += (label.empty() ? "" : " ") + text;
  return label.empty() ? "recipe" : label;
}

void require_comparable(const Variant& first, const Variant& other) {
  bool any = false;
  for (const Difference& difference : config_differences(first.recipe, other.recipe)) {
    if (difference.path == "run.dir" || difference.path == "data.cache_dir") continue;
    any = true;
    for (const std::string_view fixed : kFixedSections) {
      if (!difference.path.starts_with(fixed)) continue;
      fail(ErrorKind::kConfig, difference.path,
           " must be the same in every variant: ", printable(first.label), " has ",
           printable(difference.before), ", ", printable(other.label), " has ",
           printable(difference.after), "; variants are compared on the same batches");
    }
  }
  if (!any) {
    fail(ErrorKind::kConfig, "variants ", printable(first.label), " and ", printable(other.label),
         " are the same run; give --vary something that the recipe has not");
  }
}

std::int64_t done_steps(FileSystem& fs, const Variant& variant) {
  const auto steps =
      list_checkpoints(fs, join_path(variant.recipe.directory(), paths::kCheckpoints));
  return steps.empty() ? 0 : steps.back();
}

}  // namespace

VariantSize variant_size(const Recipe& recipe) {
  const ParameterCounts counts = parameter_counts(recipe.model, recipe.model.vocab_rows());
  const StepFlops flops = instance_flops(recipe.model, recipe.data.sequence_length);
  const auto instances = static_cast<double>(recipe.instances_per_step());
  return {.parameters = counts.total(),
          .non_embedding_parameters = counts.non_embedding(),
          .step_flops = instances * flops.window_exact,
          .step_flops_maxtext = instances * flops.maxtext,
          .step_flops_olmo_core = instances * flops.olmo_core};
}

std::vector<std::string> split_overrides(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
  }
  for (const auto& part : parts) {
    if (part.find('=') == std::string::npos) {
      fail(ErrorKind::kConfig, "--vary ", printable(text),
           ": wanted KEY=VALUE[,KEY=VALUE...], found ", printable(part));
    }
  }
  return parts;
}

std::vector<Variant> make_variants(const std::string& recipe_file,
                                   std::span<const std::string> common,
                                   std::span<const std::vector<std::string>> overrides,
                                   const std::string& directory) {
  if (overrides.size() < 2) {
    fail(ErrorKind::kConfig, "an ablation needs two variants, found ", overrides.size());
  }
  std::vector<Variant> variants;
  for (const auto& own : overrides) {
    std::vector<std::string> all(common.begin(), common.end());
    all.insert(all.end(), own.begin(), own.end());
    Variant variant{.label = label_of(own), .recipe = read_recipe(recipe_file, all)};
    variant.recipe.run.dir = join_path(directory, concat("variant-", variants.size() + 1));
    variant.recipe.checkpoint.interval = 0;
    variant.recipe.eval.interval = 0;
    variant.recipe.sample.interval = 0;
    variant.recipe.metrics.tensorboard = false;
    for (const Variant& earlier : variants) require_comparable(earlier, variant);
    variants.push_back(std::move(variant));
  }
  return variants;
}

std::vector<Turn> turns(std::size_t variants, std::int64_t last_step, std::int64_t block) {
  LOCKSTEP_CHECK(block > 0, block);
  std::vector<Turn> out;
  bool forward = true;
  for (std::int64_t first = 0; first < last_step; first += block, forward = !forward) {
    for (std::size_t i = 0; i < variants; ++i) {
      out.push_back({.variant = forward ? i : variants - 1 - i,
                     .last_step = std::min(first + block, last_step)});
    }
  }
  return out;
}

int train_variants(FileSystem& fs, const std::vector<Variant>& variants, std::int64_t block,
                   const AblationObserver& observer) {
  const std::int64_t last_step = variants.front().recipe.last_step();
  const std::int64_t all = last_step * std::ssize(variants);
  std::vector<std::int64_t> done;
  for (const Variant& variant : variants) done.push_back(done_steps(fs, variant));
  for (const Turn& turn : turns(variants.size(), last_step, block)) {
    std::int64_t& own = done[turn.variant];
    if (own >= turn.last_step) continue;
    Recipe recipe = variants[turn.variant].recipe;
    recipe.train.stop_at = turn.last_step;
    const TrainObserver of_step{.say = [](const std::string&) {},
                                .step =
                                    [&](const StepRecord& record, const TrainProgress&) {
                                      own = record.step;
                                      std::int64_t sum = 0;
                                      for (const std::int64_t steps : done) sum += steps;
                                      observer.step(turn.variant, record, sum, all);
                                    }};
    const TrainSummary summary = train(fs, recipe, {}, of_step);
    own = std::max(own, summary.last_step);
    if (!summary.replay.is_null() && summary.replay.value("different", 0) != 0) {
      observer.say(concat("warning: ", printable(variants[turn.variant].label), ": ",
                          summary.replay.dump(), " were trained again with another result"));
    }
    if (summary.stop_signal != 0) return summary.stop_signal;
  }
  return 0;
}

}  // namespace lockstep
