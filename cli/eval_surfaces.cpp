#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/text.h"
#include "checkpoint/paths.h"
#include "cli/eval_options.h"
#include "cli/golden_file.h"
#include "eval/token_kl.h"
#include "train/run_evaluation.h"

namespace lockstep::cli {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

// Where the model lies, beside its weights.
struct Place {
  std::string directory;  // of the weights
  std::string run = {};   // the run that it belongs to; empty: none
  std::int64_t step = 0;  // by the name of its directory
  std::string name = {};
};

std::string last_part(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.find_last_of('/') + 1);
}

Place place_of(FileSystem& fs, const std::string& model) {
  Place place{.directory = model_directory(fs, model)};
  while (place.directory.size() > 1 && place.directory.ends_with('/')) place.directory.pop_back();
  place.name = last_part(place.directory);
  const auto step = paths::step_of(place.name);
  if (!step) return place;
  place.step = *step;
  const std::string checkpoints = parent_directory(place.directory);
  if (last_part(checkpoints) != paths::kCheckpoints) return place;
  const std::string above = parent_directory(checkpoints);
  place.name = above == "." ? concat("run-", place.name) : last_part(above);
  if (fs.exists(join_path(above, paths::kRecipe))) place.run = above;
  return place;
}

std::vector<Surface> surfaces_of_names(const std::vector<std::string>& names) {
  std::vector<Surface> surfaces;
  for (const std::string& name : names) {
    if (name.empty()) continue;  // what the option holds when it is named alone
    const auto surface = from_name<Surface>(name);
    if (!surface) {
      fail(ErrorKind::kConfig, "--surfaces: no surface \"", printable(name),
           "\"; wanted some of heldout, tasks, kl");
    }
    surfaces.push_back(*surface);
  }
  return surfaces;
}

void take(std::string& to, const std::string& given) {
  if (!given.empty()) to = given;
}

// The run's recipe, with what the command line says on top.
EvaluationSources sources_of(FileSystem& fs, const EvalOptions& options,
                             const std::optional<Recipe>& recipe) {
  EvaluationSources sources = recipe ? evaluation_sources(*recipe) : EvaluationSources();
  if (!options.mix.empty()) {
    // Paths of another manifest start where the command line says.
    sources.mix = options.mix;
    sources.base_directory = options.base_directory;
  }
  take(sources.base_directory, options.base_directory);
  take(sources.tokenizer_name, options.tokenizer_name);
  if (!options.token_type.empty()) sources.token_type = token_width_of_name(options.token_type);
  if (options.sequence_length > 0) {
    sources.sequence_length = options.sequence_length;
    sources.task_length = options.sequence_length;
  }
  sources.tokenizer_file = tokenizer_path(fs, options.model, options.tokenizer);
  sources.batch = options.batch;
  if (options.max_documents) sources.max_documents = *options.max_documents;
  if (!options.tasks.empty()) sources.tasks = options.tasks;
  take(sources.tasks_data, options.data);
  take(sources.tasks_dir, options.tasks_directory);
  const std::uint32_t examples = sources.fewshot.count;
  sources.fewshot = fewshot_options(options);
  sources.fewshot.count = options.fewshot.value_or(examples);
  if (options.limit) sources.limit = *options.limit;
  sources.reuse = options.no_prefix_reuse ? PrefixReuse::kNo : PrefixReuse::kYes;
  if (!options.reference.empty()) {
    sources.reference = options.reference;
    sources.reference_precision = precision_of_name(options.reference_precision);
  }
  sources.reference_import = options.import;
  sources.kl_tokens =
      options.kl_tokens.value_or(recipe ? recipe->eval.kl_tokens : EvalConfig().kl_tokens);
  return sources;
}

// The surfaces that were asked for; when none was named, those for which there is what they need.
std::vector<Surface> wanted(Context& context, const EvalOptions& options,
                            const EvaluationSources& sources) {
  std::vector<Surface> surfaces = surfaces_of_names(options.surface_names);
  if (!surfaces.empty()) return surfaces;
  const auto add = [&](Surface surface, bool ready, const char* missing) {
    if (ready) {
      surfaces.push_back(surface);
    } else {
      context.say("note: ", to_name(surface), " is passed over: ", missing);
    }
  };
  add(Surface::kHeldout, !sources.mix.empty(), "name held-out token files with --mix");
  add(Surface::kTasks, !sources.tasks_data.empty(), "name the tasks' data sets with --data");
  add(Surface::kKl, !sources.reference.empty(), "name a reference with --reference");
  if (surfaces.empty()) {
    fail(ErrorKind::kConfig,
         "--surfaces: nothing to evaluate: give --mix, --data or --reference, or a run whose "
         "recipe names them in [eval]");
  }
  return surfaces;
}

// A run or bundle stands for its checkpoint of the model's step, of its newest when the model has
// no step.
std::string reference_of(FileSystem& fs, const std::string& reference, std::int64_t step) {
  if (step > 0) {
    const auto directory = reference_directory(fs, reference, step);
    if (directory) return *directory;
    fail(ErrorKind::kInput, printable(reference), ": no checkpoint of step ", step,
         ", that of the model; name the checkpoint itself");
  }
  return model_directory(fs, reference);
}

void say_heldout(Context& context, const HeldoutSurface& heldout, const std::string& c4) {
  context.say(kHeldoutTitle);
  for (const auto& domain : heldout.domains) context.say(domain_line(domain));
  if (const auto* domain = c4_domain(heldout, c4); domain != nullptr) {
    context.say("C4-like: ", printable(domain->label), format(", loss %.4f", domain->loss));
  }
}

void say_tasks(Context& context, const std::vector<TaskSurface>& tasks) {
  context.say("task                         questions      acc   +-        acc_norm  acc_bytes");
  for (const auto& task : tasks) {
    context.say(format("%-28s %9lld  %7.4f   %6.4f    %7.4f    %7.4f",
                       printable(task.name, 28).c_str(), static_cast<long long>(task.n), task.acc,
                       task.acc_stderr, task.acc_norm, task.acc_bytes));
  }
}

void say_kl(Context& context, const KlSurface& kl) {
  context.say("token KL against ", printable(kl.reference), ": ", with_commas(kl.tokens),
              " positions in ", with_commas(std::ssize(kl.by_document)), " documents");
  context.say(format("  mean %.4e  50%% %.3e  90%% %.3e  99%% %.3e  99.9%% %.3e  max %.3e", kl.mean,
                     kl.p50, kl.p90, kl.p99, kl.p99_9, kl.max));
  context.say(
      format("  same top token %.3f %%  top five in common %.3f %%", 100 * kl.top1, 100 * kl.top5));
  for (const auto& bucket : kl.buckets) {
    context.say(format("  positions %6lld to %6lld  %9lld  mean %.4e",
                       static_cast<long long>(bucket.first), static_cast<long long>(bucket.last),
                       static_cast<long long>(bucket.tokens), bucket.mean));
  }
}

void check_c4(const Surfaces& surfaces, const std::string& c4) {
  if (!surfaces.heldout || c4.empty()) return;
  const auto& labels = surfaces.heldout->documents->labels();
  if (std::find(labels.begin(), labels.end(), c4) != labels.end()) return;
  fail(ErrorKind::kConfig, "--c4: no label \"", printable(c4),
       "\" in the held-out text; nearest: ", nearest_name(c4, labels));
}

// The surfaces, opened. A reference that is a file of logits carries its own tokens.
Surfaces open(Context& context, FileSystem& fs, EvaluationSources sources, const Place& place,
              const ModelConfig& model, CpuStream& stream) {
  const std::string reference = sources.reference;
  std::optional<Reference> stored;
  if (sources.has(Surface::kKl) && !reference.empty()) {
    if (fs.kind(reference, FollowSymlinks::kYes) == FileKind::kRegular) {
      stored = open_golden_file(fs, reference);
      std::erase(sources.surfaces, Surface::kKl);
    } else {
      sources.reference = reference_of(fs, reference, place.step);
    }
  }
  context.progress("reading data");
  Surfaces surfaces = open_surfaces(fs, sources, model, stream);
  if (stored)
    surfaces.kl = {.documents = nullptr, .name = {}, .reference = {}, .stored = std::move(stored)};
  if (surfaces.kl) surfaces.kl->name = reference;
  return surfaces;
}

Evaluation evaluate(Context& context, Model& model, const EvaluatedModel& about,
                    const Surfaces& surfaces, CpuStream& stream) {
  std::optional<ProgressBar> bar;  // one for each surface and task: the time left is of that
  std::string shown;
  auto evaluation = evaluate_surfaces(model, about, surfaces, stream,
                                      {.progress =
                                           [&](const std::string& what, double share) {
                                             if (what != shown) bar.emplace(context);
                                             shown = what;
                                             bar->show(share, what);
                                           },
                                       .stopping = {}});
  context.end_progress();
  LOCKSTEP_CHECK(evaluation.has_value(), "nothing asked it to stop");
  return std::move(*evaluation);
}

}  // namespace

int run_surfaces(Context& context, const EvalOptions& options) {
  FileSystem& fs = FileSystem::real();
  const Place place = place_of(fs, options.model);
  std::optional<Recipe> recipe;
  if (!place.run.empty()) recipe = read_recipe(join_path(place.run, paths::kRecipe));
  const std::string run_precision = recipe ? to_name(recipe->train.precision) : "fp32";
  const Precision precision =
      precision_of_name(options.precision.empty() ? run_precision : options.precision);
  EvaluationSources sources = sources_of(fs, options, recipe);
  sources.surfaces = wanted(context, options, sources);
  const std::string c4 = options.c4.empty() && recipe ? recipe->eval.c4 : options.c4;
  CpuStream stream = make_stream(options.machine);
  const HfModel source(fs, place.directory, options.import);
  const Surfaces surfaces = open(context, fs, sources, place, source.config(), stream);
  check_c4(surfaces, c4);
  const std::string path = options.output.empty() && !place.run.empty()
                               ? evaluation_path(place.run, place.step)
                               : options.output;
  const EvaluatedModel about{.name = recipe ? recipe->run.name : place.name,
                             .step = place.step,
                             .precision = to_name(precision),
                             .producer = "lockstep"};
  // What the file holds already may be of another model: say so before the work.
  if (!path.empty() && fs.exists(path)) {
    static_cast<void>(
        merge(read_evaluation(fs, path), Evaluation{.model = about}, printable(path)));
  }
  const auto model =
      load_model(source, {.precision = precision, .use = Weights::Use::kForward}, stream);
  const Evaluation evaluation = evaluate(context, *model, about, surfaces, stream);
  if (evaluation.heldout) say_heldout(context, *evaluation.heldout, c4);
  if (evaluation.tasks) say_tasks(context, *evaluation.tasks);
  if (evaluation.kl) say_kl(context, *evaluation.kl);
  if (path.empty()) {
    context.say("not written: the model is of no run; name a file with -o");
  } else {
    write_evaluation(fs, path, evaluation);
    context.say("written: ", printable(path));
  }
  context.result(OrderedJson::parse(to_json_text(evaluation)));
  return 0;
}

}  // namespace lockstep::cli
