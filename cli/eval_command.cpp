#include <array>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/text.h"
#include "checkpoint/paths.h"
#include "cli/eval_options.h"
#include "data/heldout.h"
#include "data/mix.h"
#include "eval/heldout.h"
#include "eval/token_bytes.h"
#include "tokenizer/tokenizer.h"
#include "train/recipe.h"

namespace lockstep::cli {
namespace {

// What was not given is taken from the run's recipe, when the model is a run.
void complete_from_run(FileSystem& fs, EvalOptions& options) {
  const std::string path = join_path(options.model, paths::kRecipe);
  if (!options.mix.empty() || !fs.exists(path)) return;
  const Recipe recipe = read_recipe(path);
  options.mix = recipe.eval.mix;
  options.base_directory =
      recipe.eval.base_dir.empty() ? recipe.data.base_dir : recipe.eval.base_dir;
  options.tokenizer_name = recipe.data.tokenizer;
  options.token_type = to_name(recipe.data.token_type);
  if (options.sequence_length == 0) options.sequence_length = recipe.data.sequence_length;
}

OrderedJson domain_json(const DomainLoss& domain) {
  OrderedJson json;
  json["label"] = domain.label;
  json["documents"] = domain.documents;
  json["tokens"] = domain.tokens;
  json["targets"] = domain.targets;
  json["bytes"] = domain.bytes;
  json["loss"] = number_or_null(domain.strict());
  json["perplexity"] = number_or_null(domain.perplexity());
  json["bits_per_byte"] = number_or_null(domain.bits_per_byte());
  json["loss_olmo_core"] = number_or_null(domain.olmo_core());
  json["perplexity_olmo_core"] = number_or_null(std::exp(domain.olmo_core()));
  return json;
}

std::string domain_line(const DomainLoss& domain) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), "%-28s %9lld %11lld %9.4f %11.2f %9.4f %12.4f",
                printable(domain.label, 28).c_str(), static_cast<long long>(domain.documents),
                static_cast<long long>(domain.targets), domain.strict(), domain.perplexity(),
                domain.bits_per_byte(), domain.olmo_core());
  return text.data();
}

HeldoutDocuments open_documents(FileSystem& fs, const EvalOptions& options,
                                const ModelConfig& model) {
  const HeldoutSpec spec{.base_directory = options.base_directory,
                         .width = token_width_of_name(options.token_type),
                         .end_of_text = static_cast<std::uint32_t>(model.eos_token_id),
                         .padding = 0,
                         .sequence_length = static_cast<std::uint64_t>(options.sequence_length > 0
                                                                           ? options.sequence_length
                                                                           : model.context_length),
                         .vocabulary = {.size = static_cast<std::uint32_t>(model.vocab_size),
                                        .rows = static_cast<std::uint32_t>(model.vocab_rows())}};
  return {fs, spec, read_mix(fs, options.mix, options.tokenizer_name)};
}

int run_heldout(Context& context, EvalOptions options) {
  FileSystem& fs = FileSystem::real();
  complete_from_run(fs, options);
  if (options.mix.empty()) {
    fail(ErrorKind::kConfig, "--heldout: name the held-out token files with --mix");
  }
  CpuStream stream = make_stream(options.machine);
  const HfModel source(fs, model_directory(fs, options.model), options.import);
  const HeldoutDocuments documents = open_documents(fs, options, source.config());
  std::vector<std::int32_t> bytes;
  if (const std::string path = tokenizer_path(fs, options.model, options.tokenizer);
      !path.empty()) {
    bytes = bytes_of_tokens(Tokenizer::load(fs, path), source.config().vocab_size);
  }
  const auto model = load_model(
      source, {.precision = precision_of_name(options.precision), .use = Weights::Use::kForward},
      stream);
  const HeldoutReport report = evaluate_heldout(
      *model, documents,
      {.batch = options.batch,
       .max_documents = options.max_documents,
       .bytes_of_token = bytes,
       .progress =
           [&](std::size_t done, std::size_t all) {
             context.progress(concat("held-out: ", done, " of ", all, " documents"));
           },
       .stopping = {}});
  context.end_progress();
  context.say(
      "domain                       documents     targets      loss  perplexity  bits/byte"
      "  olmo-core");
  OrderedJson document;
  document["model"] = options.model;
  document["precision"] = options.precision;
  document["data_fingerprint"] = documents.fingerprint();
  document["sequence_length"] = documents.sequence_length();
  document["domains"] = OrderedJson::array();
  for (const auto& domain : report.domains) {
    context.say(domain_line(domain));
    document["domains"].push_back(domain_json(domain));
  }
  context.say(domain_line(report.total()));
  document["total"] = domain_json(report.total());
  if (options.by_document) {
    document["by_document"] = OrderedJson::array();
    for (const auto& loss : report.documents) {
      document["by_document"].push_back({{"document", loss.document},
                                         {"label", documents.labels()[loss.label]},
                                         {"targets", loss.targets},
                                         {"ce", loss.ce}});
    }
  }
  context.result(document);
  return 0;
}

int run_eval(Context& context, const EvalOptions& options) {
  const int chosen = (options.heldout ? 1 : 0) + (options.tasks.empty() ? 0 : 1) +
                     (options.requests.empty() ? 0 : 1);
  if (chosen != 1) {
    fail(ErrorKind::kConfig, "eval: say what to evaluate: one of --heldout, --tasks, --requests");
  }
  if (!options.tasks.empty()) return run_tasks(context, options);
  if (!options.requests.empty()) return run_requests(context, options);
  return run_heldout(context, options);
}

}  // namespace

void add_eval_command(CLI::App& app, Context& context) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* command =
      context.add(app, "eval", "Evaluates a model on held-out text, tasks or requests",
                  [&context, options] { return run_eval(context, *options); });
  command->add_option("--model", options->model, "A Hugging Face directory, a checkpoint or a run")
      ->required();
  command->add_flag("--heldout", options->heldout, "Loss of every held-out document, by domain");
  command->add_option("--mix", options->mix,
                      "Manifest of held-out token files; default: eval.mix of the run");
  command->add_option("--base-dir", options->base_directory, "Where its paths start");
  command->add_option("--tokenizer-name", options->tokenizer_name,
                      "What {TOKENIZER} in its paths stands for");
  command->add_option("--token-type", options->token_type,
                      "Of headerless token files: uint32 or uint16 (uint32)");
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
  command->add_option("--precision", options->precision, "fp32 or bf16 (fp32)");
  add_task_options(*command, *options);
  add_import_options(*command, options->import);
  add_machine_options(*command, options->machine);
}

}  // namespace lockstep::cli
