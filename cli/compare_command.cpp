#include <memory>

#include "base/text.h"
#include "cli/compare_options.h"
#include "eval/evaluation_file.h"
#include "report/comparison_json.h"
#include "report/html_page.h"
#include "train/recipe.h"

namespace lockstep::cli {
namespace {

// docs/compare.md.
int exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return 0;
    case Verdict::kDiffers:
      return 10;
    case Verdict::kNotEnoughData:
      return 11;
  }
  return exit_code(ErrorKind::kBug);
}

// Evaluations that lie elsewhere take the step that they say.
Evidence load_side(FileSystem& fs, const std::string& path,
                   const std::vector<std::string>& evaluations) {
  Evidence side = load_evidence(fs, path);
  for (const std::string& file : evaluations) {
    const std::int64_t step = read_evaluation(fs, file).model.step;
    side.evaluations.insert_or_assign(step, file);
    if (side.kind == EvidenceKind::kModel && side.checkpoints.contains(kUnknownStep)) {
      side.checkpoints = {{step, side.checkpoints.at(kUnknownStep)}};
    }
  }
  return side;
}

// The domain that counts as C4: as asked for, else as the recipe of either run says.
std::string c4_label(const CompareCommand& command, const std::vector<const Evidence*>& sides) {
  std::string label = command.c4;
  for (const Evidence* side : sides) {
    if (label.empty() && !side->recipe_path.empty()) label = read_recipe(side->recipe_path).eval.c4;
  }
  return label;
}

// The page about the sides that were compared, and what the comparison found.
void write_report(Context& context, FileSystem& fs, const std::string& path,
                  const std::vector<const Evidence*>& sides, const Comparison& comparison) {
  std::vector<Evidence> evidence;
  for (const Evidence* side : sides) {
    if (side != nullptr) evidence.push_back(*side);
  }
  ReportOptions options;
  options.progress = [&](const std::string& text) { context.progress(printable(text)); };
  const std::string html = make_report(fs, evidence, {&comparison, 1}, options);
  context.end_progress();
  write_file_atomic(fs, path, std::string_view(html));
  context.say("wrote ", printable(path), ", ", human_bytes(html.size()));
}

int compare(Context& context, const CompareCommand& command) {
  FileSystem& fs = FileSystem::real();
  if (fs.is_directory(command.report)) {
    fail(ErrorKind::kConfig, "compare: --report ", printable(command.report),
         " is a directory; name the HTML file to write");
  }
  CompareOptions options;
  options.window = command.window;
  options.surfaces.bootstrap.seed = command.seed;
  for (const std::string& text : command.tolerances) options.surfaces.tolerances.set(text);

  const Evidence a = load_side(fs, command.a, command.evaluations_a);
  const Evidence b = load_side(fs, command.b, command.evaluations_b);
  const auto companion = [&](const std::string& path) {
    return path.empty() ? nullptr : std::make_unique<Evidence>(load_evidence(fs, path));
  };
  const std::unique_ptr<Evidence> floor = companion(command.floor);
  const std::unique_ptr<Evidence> other = companion(command.context);

  options.surfaces.c4_label = c4_label(command, {&a, &b});
  CpuStream stream = make_stream(command.machine);
  if (!command.no_kl) {
    options.measure_kl = make_kl_source(context, fs, command, {&a, &b}, stream);
  }
  const Comparison comparison =
      compare_evidence(fs, a, b, floor.get(), other.get(), options, stream.pool());
  say_comparison(context, comparison);
  context.result(to_json(comparison));  // first: a page that cannot be written loses no result
  if (!command.report.empty()) {
    write_report(context, fs, command.report, {&a, &b, floor.get(), other.get()}, comparison);
  }
  return exit_code_of(comparison.verdict);
}

}  // namespace

void add_compare_command(CLI::App& app, Context& context) {
  const auto options = std::make_shared<CompareCommand>();
  CLI::App* command = context.add(
      app, "compare",
      "Says whether a run reproduces another one: exit code 0 reproduced, 10 differs, 11 not "
      "enough data",
      [&context, options] { return compare(context, *options); });
  const char* what = "A run, a reference bundle, a checkpoint or a Hugging Face directory";
  command->add_option("A", options->a, what)->required();
  command->add_option("B", options->b, concat(what, ": the reference"))->required();
  command
      ->add_option("--evaluation-a", options->evaluations_a,
                   "Evaluation files of A that do not lie in A/evals; may be given again")
      ->allow_extra_args(false);
  command->add_option("--evaluation-b", options->evaluations_b, "The same of B")
      ->allow_extra_args(false);
  command->add_option("--floor", options->floor,
                      "A run or bundle whose token KL against B counts as noise (B trained in "
                      "bf16, say): token KL is held to twice that");
  command->add_option("--context", options->context,
                      "Another seed of B, say: its distance is shown, and decides nothing");
  command
      ->add_option("--tolerance", options->tolerances,
                   "SURFACE=VALUE: c4_loss, tasks, task, tasks/NAME, perplexity, domain, "
                   "perplexity/LABEL or token_kl; may be given again")
      ->allow_extra_args(false);
  command->add_option("--report", options->report,
                      "Also writes one HTML file about these sides, the verdict on top");
  command->add_option("--c4", options->c4,
                      "The held-out domain that counts as C4; default: eval.c4 of A or B, else the "
                      "first whose label contains c4, else the first");
  command
      ->add_option("--window", options->window, "Steps of the worst window of training loss (50)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  command->add_option("--seed", options->seed, "Of the bootstrap's draws (0)");
  command->add_flag("--no-kl", options->no_kl, "Do not run weights to measure token KL");
  command
      ->add_option("--kl-tokens", options->kl_tokens,
                   "Held-out tokens for token KL, whole documents; 0: all (65536)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--mix", options->mix,
                      "Manifest of held-out token files for token KL; default: eval.mix of A or B");
  command->add_option("--base-dir", options->base_directory, "Where its paths start");
  command->add_option("--tokenizer-name", options->tokenizer_name,
                      "What {TOKENIZER} in its paths stands for");
  command->add_option("--token-type", options->token_type,
                      "Of headerless token files: uint32 or uint16 (uint32)");
  command
      ->add_option("--sequence-length", options->sequence_length,
                   "Longer documents are cut here; default: the run's, else the model's context")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 24));
  command->add_option("--precision", options->precision,
                      "In which both sides' weights are run: fp32 or bf16 (fp32)");
  add_import_options(*command, options->import);
  add_machine_options(*command, options->machine);
}

}  // namespace lockstep::cli
