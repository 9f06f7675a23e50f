#include <array>
#include <cstdio>
#include <memory>

#include "base/text.h"
#include "checkpoint/paths.h"
#include "cli/eval_options.h"
#include "data/heldout.h"
#include "eval/heldout.h"
#include "eval/surfaces.h"
#include "eval/token_bytes.h"
#include "tokenizer/tokenizer.h"
#include "train/recipe.h"
#include "train/run_evaluation.h"

namespace lockstep::cli {
namespace {

OrderedJson domain_json(const HeldoutSurface::Domain& domain) {
  OrderedJson json;
  json["label"] = domain.label;
  json["documents"] = domain.documents;
  json["tokens"] = domain.tokens;
  json["targets"] = domain.targets;
  json["bytes"] = domain.bytes;
  json["loss"] = number_or_null(domain.loss);
  json["perplexity"] = number_or_null(domain.perplexity);
  json["bits_per_byte"] = number_or_null(domain.bits_per_byte);
  json["loss_olmo_core"] = number_or_null(domain.loss_olmo_core);
  json["perplexity_olmo_core"] = number_or_null(domain.perplexity_olmo_core);
  return json;
}

// What was not given is taken from the run's recipe, when the model is a run.
EvaluationSources heldout_sources(FileSystem& fs, const EvalOptions& options) {
  EvaluationSources sources;
  const std::string path = join_path(options.model, paths::kRecipe);
  if (options.mix.empty() && fs.exists(path)) {
    sources = evaluation_sources(read_recipe(path));
  } else {
    sources.mix = options.mix;
    sources.base_directory = options.base_directory;
    sources.tokenizer_name = options.tokenizer_name;
  }
  if (!options.token_type.empty()) sources.token_type = token_width_of_name(options.token_type);
  if (options.sequence_length > 0) sources.sequence_length = options.sequence_length;
  return sources;
}

HeldoutReport evaluate(Context& context, const EvalOptions& options, Model& model,
                       const HeldoutDocuments& documents, const std::vector<std::int32_t>& bytes) {
  HeldoutReport report = evaluate_heldout(
      model, documents,
      {.batch = options.batch,
       .max_documents = options.max_documents.value_or(0),
       .bytes_of_token = bytes,
       .progress =
           [&](std::size_t done, std::size_t all) {
             context.progress(concat("held-out: ", done, " of ", all, " documents"));
           },
       .stopping = {}});
  context.end_progress();
  return report;
}

int run_heldout(Context& context, const EvalOptions& options) {
  FileSystem& fs = FileSystem::real();
  CpuStream stream = make_stream(options.machine);
  const HfModel source(fs, model_directory(fs, options.model), options.import);
  const auto documents = open_heldout(fs, heldout_sources(fs, options), source.config());
  std::vector<std::int32_t> bytes;
  if (const std::string path = tokenizer_path(fs, options.model, options.tokenizer);
      !path.empty()) {
    bytes = bytes_of_tokens(Tokenizer::load(fs, path), source.config().vocab_size);
  }
  const auto model = load_model(
      source,
      {.precision = precision_of_name(precision_name(options)), .use = Weights::Use::kForward},
      stream);
  const HeldoutReport report = evaluate(context, options, *model, *documents, bytes);
  const HeldoutSurface surface = heldout_surface(report, *documents);
  context.say(kHeldoutTitle);
  OrderedJson document;
  document["model"] = options.model;
  document["precision"] = precision_name(options);
  document["data_fingerprint"] = surface.data_fingerprint;
  document["sequence_length"] = surface.sequence_length;
  document["domains"] = OrderedJson::array();
  for (const auto& domain : surface.domains) {
    context.say(domain_line(domain));
    document["domains"].push_back(domain_json(domain));
  }
  const HeldoutSurface::Domain total = domain_of(report.total());
  context.say(domain_line(total));
  document["total"] = domain_json(total);
  if (options.by_document) {
    document["by_document"] = OrderedJson::array();
    for (const auto& loss : surface.by_document) {
      document["by_document"].push_back({{"document", loss.document},
                                         {"label", loss.label},
                                         {"targets", loss.targets},
                                         {"ce", loss.ce}});
    }
  }
  context.result(document);
  return 0;
}

int run_eval(Context& context, const EvalOptions& options) {
  // With --surfaces, --tasks says which ones.
  const int chosen = (options.heldout ? 1 : 0) +
                     (options.surfaces || !options.tasks.empty() ? 1 : 0) +
                     (options.requests.empty() ? 0 : 1);
  if (chosen != 1) {
    fail(ErrorKind::kConfig,
         "eval: say what to evaluate: one of --heldout, --tasks, --requests, --surfaces");
  }
  if (options.surfaces) return run_surfaces(context, options);
  if (!options.reference.empty() || !options.output.empty()) {
    fail(ErrorKind::kConfig, "eval: --reference and --output go with --surfaces");
  }
  if (!options.tasks.empty()) return run_tasks(context, options);
  if (!options.requests.empty()) return run_requests(context, options);
  return run_heldout(context, options);
}

}  // namespace

std::string domain_line(const HeldoutSurface::Domain& domain) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), "%-28s %9lld %11lld %9.4f %11.2f %9.4f %12.4f",
                printable(domain.label, 28).c_str(), static_cast<long long>(domain.documents),
                static_cast<long long>(domain.targets), domain.loss, domain.perplexity,
                domain.bits_per_byte, domain.loss_olmo_core);
  return text.data();
}

void add_eval_command(CLI::App& app, Context& context) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* command = context.add(
      app, "eval",
      "Evaluates a model on held-out text, tasks, requests, or all its surfaces at once",
      [&app, &context, options] {
        // Named alone, the option has no value to show for it.
        options->surfaces = app.get_subcommand("eval")->count("--surfaces") > 0;
        return run_eval(context, *options);
      });
  command->add_option("--model", options->model, "A Hugging Face directory, a checkpoint or a run")
      ->required();
  command->add_flag("--heldout", options->heldout, "Loss of every held-out document, by domain");
  command->add_option("--mix", options->mix,
                      "Manifest of held-out token files; default: eval.mix of the run");
  command->add_option("--base-dir", options->base_directory, "Where its paths start");
  command->add_option("--tokenizer-name", options->tokenizer_name,
                      "What {TOKENIZER} in its paths stands for");
  command->add_option(
      "--token-type", options->token_type,
      "Of headerless token files: uint32 or uint16; default: the run's, else uint32");
  command->add_option("--tokenizer", options->tokenizer,
                      "A tokenizer.json; default: the one beside the model or the run");
  command
      ->add_option(
          "--sequence-length", options->sequence_length,
          "Longer texts are cut here; default: the run's (held-out text), else the model's context")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 24));
  command->add_option("--batch", options->batch, "Sequences at a time; no result depends on it (8)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16));
  command->add_option("--max-documents", options->max_documents, "Of each domain; 0: all (0)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--by-document", options->by_document, "Every document's loss, in the JSON");
  command->add_option("--precision", options->precision,
                      "fp32 or bf16; default: fp32, with --surfaces the run's");
  add_task_options(*command, *options);
  add_surface_options(*command, *options);
  add_import_options(*command, options->import);
  add_machine_options(*command, options->machine);
}

}  // namespace lockstep::cli
