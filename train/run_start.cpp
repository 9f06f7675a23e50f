#include "train/run_start.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/paths.h"
#include "checkpoint/retention.h"
#include "config/compare.h"
#include "config/print.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kMaxRecipeBytes = std::uint64_t{1} << 20;

void write_recipe(FileSystem& fs, const Recipe& recipe) {
  write_file_atomic(fs, join_path(recipe.directory(), paths::kRecipe),
                    std::string_view(config_toml(recipe)));
}

void fork(FileSystem& fs, const Recipe& recipe, std::int64_t step,
          const std::vector<Difference>& differences, EventLog& events, const Say& say) {
  const std::string directory = recipe.directory();
  const std::string checkpoints = join_path(directory, paths::kCheckpoints);
  const auto steps = list_checkpoints(fs, checkpoints);
  if (std::find(steps.begin(), steps.end(), step) == steps.end()) {
    fail(ErrorKind::kConfig, "run.fork_from = ", step, ": ", printable(checkpoints),
         " has no checkpoint of that step; see lockstep checkpoint ls");
  }
  const std::string mark = concat(".before-fork-", step);
  const auto free_name = [&](const std::string& wanted) {
    std::string name = wanted;
    for (int n = 2; fs.exists(name); ++n) name = concat(wanted, "-", n);
    return name;
  };
  for (const std::int64_t later : steps) {
    if (later <= step) continue;
    const std::string path = join_path(checkpoints, paths::checkpoint_name(later));
    fs.rename(path, free_name(path + mark));
  }
  fs.sync_directory(checkpoints);
  // Evaluations of later steps are of the weights before the fork.
  const std::string evals = join_path(directory, paths::kEvals);
  if (fs.is_directory(evals)) {
    constexpr std::string_view kEnding = ".json";
    for (const std::string& name : fs.list(evals)) {
      if (!name.ends_with(kEnding)) continue;
      const std::string stem = name.substr(0, name.size() - kEnding.size());
      if (paths::step_of(stem).value_or(step) <= step) continue;
      fs.rename(join_path(evals, name), free_name(join_path(evals, stem + mark)));
    }
    fs.sync_directory(evals);
  }
  const std::string saved = join_path(directory, paths::kRecipe);
  write_file_atomic(fs, free_name(join_path(directory, concat("recipe", mark, ".toml"))),
                    std::string_view(read_file(fs, saved, kMaxRecipeBytes)));
  write_recipe(fs, recipe);
  events.add("fork", step, {{"differences", describe(differences)}});
  say(concat("forked from step ", step, ": ", describe(differences)));
}

// An existing run: may this recipe go on with it?
void check_recipe(FileSystem& fs, const Recipe& recipe, EventLog& events, const Say& say) {
  const std::string path = join_path(recipe.directory(), paths::kRecipe);
  const Recipe saved = parse_recipe(read_file(fs, path, kMaxRecipeBytes), path);
  const auto all = resume_differences(saved, recipe);
  std::vector<Difference> benign;
  std::vector<Difference> differences;
  for (const auto& difference : all) {
    (difference.benign ? benign : differences).push_back(difference);
  }
  const bool new_fork =
      recipe.run.fork_from.has_value() && recipe.run.fork_from != saved.run.fork_from;
  if (new_fork) {
    fork(fs, recipe, *recipe.run.fork_from, differences, events, say);
    return;
  }
  if (!differences.empty()) {
    fail(
        ErrorKind::kConfig, printable(recipe.directory()),
        ": the recipe differs from the run's: ", describe(differences),
        "; take the run's values, use another run.dir, or fork on purpose with run.fork_from=STEP");
  }
  if (benign.empty()) return;
  write_recipe(fs, recipe);
  events.add("change", 0, {{"differences", describe(benign)}});
  say(concat("changed, without bearing on the result: ", describe(benign)));
}

// init.from: a run, a checkpoint, or a Hugging Face directory.
RunStart start_from(FileSystem& fs, const Recipe& recipe, const Say& say) {
  const std::string& from = recipe.init.from;
  RunStart start{.kind = StartKind::kFrom, .checkpoint = nullptr, .hf_directory = ""};
  if (fs.exists(join_path(from, paths::kManifest))) {
    start.checkpoint = std::make_unique<CheckpointReader>(fs, from);
  } else if (const std::string checkpoints = join_path(from, paths::kCheckpoints);
             fs.is_directory(checkpoints)) {
    if (recipe.init.step) {
      start.checkpoint = std::make_unique<CheckpointReader>(
          fs, join_path(checkpoints, paths::checkpoint_name(*recipe.init.step)));
    } else {
      start.checkpoint = open_newest(fs, checkpoints, say);
      if (!start.checkpoint) {
        fail(ErrorKind::kInput, "init.from = ", printable(from), ": the run has no checkpoint");
      }
    }
  } else if (fs.exists(join_path(from, paths::kHfConfig))) {
    start.hf_directory = from;
    return start;
  } else {
    fail(ErrorKind::kInput, "init.from = ", printable(from),
         ": neither a run, nor a checkpoint, nor a Hugging Face directory");
  }
  start.checkpoint->verify();
  return start;
}

}  // namespace

RunStart open_run(FileSystem& fs, const Recipe& recipe, EventLog& events, const Say& say) {
  const std::string directory = recipe.directory();
  const std::string checkpoints = join_path(directory, paths::kCheckpoints);
  const bool existing = fs.exists(join_path(directory, paths::kRecipe));
  fs.create_directories(checkpoints);
  for (const auto& name : remove_unfinished(fs, checkpoints)) {
    say(concat("removed ", printable(name), ", a save that did not finish"));
  }
  if (existing) {
    check_recipe(fs, recipe, events, say);
  } else {
    if (recipe.run.fork_from) {
      fail(ErrorKind::kConfig, "run.fork_from = ", *recipe.run.fork_from, ": ",
           printable(directory), " is not a run yet");
    }
    write_recipe(fs, recipe);
  }
  RunStart start{.kind = StartKind::kResume, .checkpoint = nullptr, .hf_directory = ""};
  start.checkpoint = open_newest(fs, checkpoints, [&](const std::string& text) {
    events.add("warning", 0, {{"text", text}});
    say("warning: " + text);
  });
  if (start.checkpoint) return start;
  if (!recipe.init.from.empty()) return start_from(fs, recipe, say);
  start.kind = StartKind::kFresh;
  return start;
}

}  // namespace lockstep
