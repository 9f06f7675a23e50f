#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "checkpoint/paths.h"
#include "cli/command.h"
#include "cli/model_source.h"
#include "data/heldout.h"
#include "data/mix.h"
#include "report/ablation_file.h"

namespace lockstep::cli {
namespace {

struct AblateOptions {
  std::string recipe;
  std::vector<std::string> overrides;
  std::vector<std::string> vary;
  std::string out;
  std::int64_t block = 10;
};

// Threads, kernels and how busy the machine was: what a speed rests on.
std::string machine_text(const Recipe& recipe) {
  double load[3] = {};
  char text[64] = "";
  if (::getloadavg(load, 3) == 3) {
    std::snprintf(text, sizeof text, ", load average %.1f %.1f %.1f at the end", load[0], load[1],
                  load[2]);
  }
  return concat(recipe.cpu.thread_count(), " threads of ", ThreadPool::available_cpus(), " CPUs, ",
                name_of(recipe.cpu.kernel_isa()), ", ", to_name(recipe.train.precision), text);
}

HeldoutDocuments heldout_documents(FileSystem& fs, const Recipe& recipe) {
  const std::string& tokenizer =
      recipe.eval.tokenizer.empty() ? recipe.data.tokenizer : recipe.eval.tokenizer;
  const HeldoutSpec spec{
      .base_directory = recipe.eval.base_dir.empty() ? recipe.data.base_dir : recipe.eval.base_dir,
      .width = recipe.data.token_type,
      .end_of_text = static_cast<std::uint32_t>(recipe.model.eos_token_id),
      .padding = 0,
      .sequence_length = static_cast<std::uint64_t>(recipe.data.sequence_length),
      .vocabulary = {.size = static_cast<std::uint32_t>(recipe.model.vocab_size),
                     .rows = static_cast<std::uint32_t>(recipe.model.vocab_rows())}};
  return {fs, spec, read_mix(fs, recipe.eval.mix, tokenizer)};
}

MeasuredVariant measure(Context& context, FileSystem& fs, const Variant& variant) {
  const Recipe& recipe = variant.recipe;
  MeasuredVariant measured{.variant = variant, .curve = {}, .heldout = {}};
  std::vector<std::string> notes;
  measured.curve = read_curve(fs, join_path(recipe.directory(), paths::kMetrics), notes);
  if (recipe.eval.mix.empty()) return measured;
  const HeldoutDocuments documents = heldout_documents(fs, recipe);
  CpuStream stream(recipe.cpu.thread_count(), recipe.cpu.kernel_isa());
  const HfModel source(fs, model_directory(fs, recipe.directory()));
  const auto model = load_model(
      source, {.precision = recipe.train.precision, .use = Weights::Use::kForward}, stream);
  measured.heldout =
      evaluate_heldout(*model, documents,
                       {.batch = recipe.eval.batch,
                        .max_documents = recipe.eval.max_documents,
                        .bytes_of_token = {},
                        .progress =
                            [&](std::size_t done, std::size_t all) {
                              context.progress(concat("held-out loss of ", printable(variant.label),
                                                      ": ", done, " of ", all, " documents"));
                            },
                        .stopping = {}});
  return measured;
}

// The file as it is before anything is measured; goes on with the one that is there.
AblationFile begin(FileSystem& fs, const AblateOptions& options,
                   const std::vector<Variant>& variants) {
  AblationFile file;
  file.recipe = options.recipe;
  file.machine = machine_text(variants.front().recipe);
  file.ablation.block = options.block;
  file.ablation.steps = variants.front().recipe.last_step();
  for (const Variant& variant : variants) {
    AblationRow row;
    row.label = variant.label;
    row.directory = variant.recipe.directory();
    file.ablation.rows.push_back(row);
  }
  fs.create_directories(options.out);
  const std::string path = join_path(options.out, kAblationFile);
  if (fs.exists(path)) {
    require_same_ablation(read_ablation(fs, path), file, path);
  } else {
    write_file_atomic(fs, path, std::string_view(to_json_text(file)));
  }
  return file;
}

std::vector<Variant> variants_of(const AblateOptions& options) {
  std::vector<std::vector<std::string>> overrides;
  if (options.vary.size() == 1) overrides.emplace_back();  // against the recipe as it is
  for (const auto& text : options.vary) overrides.push_back(split_overrides(text));
  return make_variants(options.recipe, options.overrides, overrides, options.out);
}

std::string step_line(const Variant& variant, const StepRecord& record, std::int64_t done,
                      std::int64_t all) {
  char text[96];
  std::snprintf(text, sizeof text, "step %lld  loss %.4f  %s tok/s  ",
                static_cast<long long>(record.step), record.loss,
                human_count(record.tokens_per_s).c_str());
  return concat("[", done * 100 / all, "%] ", text, printable(variant.label, 48));
}

int run_ablate(Context& context, const AblateOptions& options) {
  FileSystem& fs = FileSystem::real();
  const std::vector<Variant> variants = variants_of(options);
  AblationFile file = begin(fs, options, variants);
  context.say(variants.size(), " variants, ", file.ablation.steps, " steps each, in turns of ",
              options.block, "; the first is the baseline");
  const int signal = train_variants(
      fs, variants, options.block,
      {.say = [&](const std::string& text) { context.say(std::string_view(text)); },
       .step =
           [&](std::size_t i, const StepRecord& record, std::int64_t done, std::int64_t all) {
             context.progress(step_line(variants[i], record, done, all));
           }});
  context.end_progress();
  if (signal != 0) {
    context.say("stopped by signal ", signal, " (", strsignal(signal),
                ") and saved; run the same command to go on");
    context.result({{"directory", options.out}, {"stop_signal", signal}});
    return exit_code(ErrorKind::kPreempted);
  }
  std::vector<MeasuredVariant> measured;
  for (const Variant& variant : variants) measured.push_back(measure(context, fs, variant));
  context.end_progress();
  ThreadPool pool(variants.front().recipe.cpu.thread_count());
  file.ablation = summarise(measured, options.block, pool);
  file.finished = true;
  file.machine = machine_text(variants.front().recipe);
  const std::string path = join_path(options.out, kAblationFile);
  const std::string text = to_json_text(file);
  write_file_atomic(fs, path, std::string_view(text));
  context.say(ablation_text(file.ablation));
  context.say("speed: ", file.machine, "; ", printable(path));
  context.result(OrderedJson::parse(text));
  return 0;
}

}  // namespace

void add_ablate_command(CLI::App& app, Context& context) {
  const auto options = std::make_shared<AblateOptions>();
  CLI::App* command = context.add(
      app, "ablate", "Trains variants of a recipe in turns on the same batches and compares them",
      [&context, options] { return run_ablate(context, *options); });
  command->add_option("RECIPE", options->recipe, "A recipe file (recipes/*.toml)")->required();
  command->add_option("KEY=VALUE", options->overrides, "Keys to override in every variant");
  command
      ->add_option("--vary", options->vary,
                   "Keys of one variant: 'model.n_heads=8,model.head_dim=32'; once: against the "
                   "recipe as it is, several times: against the first")
      ->required()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("-o,--out", options->out, "The directory to make, or to go on in")
      ->required();
  command->add_option("--block", options->block, "Steps of a turn (10)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
}

}  // namespace lockstep::cli
