#include <cmath>
#include <memory>

#include "base/text.h"
#include "cli/command.h"
#include "cli/golden_file.h"
#include "cli/model_source.h"
#include "data/token_file.h"
#include "eval/parity.h"
#include "tokenizer/tokenizer.h"

namespace lockstep::cli {
namespace {

struct ParityOptions {
  std::string model;
  std::string golden;
  std::string reference;
  std::string tokens;
  std::string text;
  std::string tokenizer;
  std::int64_t length = 0;
  std::int64_t sequences = 1;
  std::string precision = "fp32";
  std::string reference_precision = "fp32";
  HfImportOptions import;
  MachineOptions machine;
};

std::vector<std::int32_t> read_tokens(FileSystem& fs, const ParityOptions& options,
                                      const ModelConfig& config) {
  const TokenFile file(fs, options.tokens, TokenWidth::k32);
  const auto wanted =
      static_cast<std::uint64_t>(options.length == 0
                                     ? static_cast<std::int64_t>(file.tokens()) / options.sequences
                                     : options.length) *
      static_cast<std::uint64_t>(options.sequences);
  if (wanted == 0 || wanted > file.tokens()) {
    fail(ErrorKind::kInput, printable(options.tokens), ": holds ", file.tokens(),
         " tokens, wanted ", wanted, "; lower --length or --sequences");
  }
  std::vector<std::uint32_t> ids(wanted);
  file.read(0, ids,
            {static_cast<std::uint32_t>(config.vocab_size),
             static_cast<std::uint32_t>(config.vocab_rows())});
  return {ids.begin(), ids.end()};
}

std::vector<std::int32_t> encode_text(FileSystem& fs, const ParityOptions& options) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;
  const std::string path = tokenizer_path(fs, options.model, options.tokenizer);
  if (path.empty()) {
    fail(ErrorKind::kInput, printable(options.model),
         ": no tokenizer.json beside the model; name one with --tokenizer");
  }
  const auto ids =
      Tokenizer::load(fs, path).encode(read_file(fs, options.text, kMaxBytes), Special::kText);
  const std::int64_t length =
      options.length == 0 ? std::ssize(ids) / options.sequences : options.length;
  if (length == 0 || length * options.sequences > std::ssize(ids)) {
    fail(ErrorKind::kInput, printable(options.text), ": is ", ids.size(), " tokens, wanted ",
         std::max<std::int64_t>(length, 1) * options.sequences, "; lower --length or --sequences");
  }
  return {ids.begin(), ids.begin() + length * options.sequences};
}

OrderedJson to_json(const ParityReport& report) {
  OrderedJson json;
  json["compared"] = report.compared;
  json["vocab"] = report.vocab;
  json["logit_max_abs"] = report.logit_max_abs;
  json["kl_mean"] = report.kl_mean;
  json["kl_max"] = report.kl_max;
  json["top1"] = report.top1;
  json["grad_rel_l2_max"] = nullptr;
  json["grad_rel_l2"] = nullptr;
  if (const auto largest = report.gradient_error_max()) {
    json["grad_rel_l2_max"] = *largest;
    json["grad_rel_l2"] = OrderedJson::object();
    for (const auto& [name, error] : report.gradient_errors) json["grad_rel_l2"][name] = error;
  }
  return json;
}

void say(Context& context, const ParityReport& report) {
  context.say("positions compared     ", with_commas(report.compared), ", vocabulary ",
              with_commas(report.vocab));
  context.say("largest logit distance ", report.logit_max_abs);
  context.say("KL mean, max           ", report.kl_mean, ", ", report.kl_max);
  context.say("same top token         ", 100 * report.top1, " %");
  const auto largest = report.gradient_error_max();
  if (!largest) {
    context.say("gradients              the reference has none");
    return;
  }
  context.say("largest gradient error ", *largest, " (of ", report.gradient_errors.size(),
              " tensors)");
}

int parity(Context& context, const ParityOptions& options) {
  if (options.golden.empty() == options.reference.empty()) {
    fail(ErrorKind::kConfig, "parity: give --golden FILE or --reference DIR, and not both");
  }
  if (!options.reference.empty() && options.tokens.empty() == options.text.empty()) {
    fail(ErrorKind::kConfig, "parity: with --reference give --tokens FILE or --text FILE");
  }
  FileSystem& fs = FileSystem::real();
  CpuStream stream = make_stream(options.machine);
  const bool golden = !options.golden.empty();
  const HfModel source(fs, model_directory(fs, options.model), options.import);
  const ModelOptions model_options{
      .precision = precision_of_name(options.precision),
      .use = golden ? Weights::Use::kForwardAndBackward : Weights::Use::kForward};
  const auto model = load_model(source, model_options, stream);
  for (const std::string& field : source.ignored_fields()) {
    context.say("note: config.json: ", printable(field), " is not known here and was ignored");
  }

  Reference reference;
  std::unique_ptr<Model> other;
  if (golden) {
    reference = open_golden_file(fs, options.golden);
  } else {
    const HfModel other_source(fs, model_directory(fs, options.reference), options.import);
    other = load_model(other_source,
                       {.precision = precision_of_name(options.reference_precision),
                        .use = Weights::Use::kForward},
                       stream);
    reference =
        reference_from_model(*other,
                             options.tokens.empty() ? encode_text(fs, options)
                                                    : read_tokens(fs, options, source.config()),
                             options.sequences);
  }
  const ParityReport report = measure_parity(*model, reference, stream);
  OrderedJson document = to_json(report);
  document["precision"] = options.precision;
  document["isa"] = name_of(stream.isa());
  say(context, report);
  context.result(document);
  if (!std::isfinite(report.logit_max_abs + report.kl_mean +
                     report.gradient_error_max().value_or(0))) {
    context.say("values that are not finite");
    return exit_code(ErrorKind::kNumeric);
  }
  return 0;
}

}  // namespace

void add_parity_command(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ParityOptions>();
  CLI::App* command = context.add(
      app, "parity",
      "Compares a model's logits and gradients with a golden file, or with another model's",
      [&context, options] { return parity(context, *options); });
  command->add_option("--model", options->model, "A Hugging Face directory, a checkpoint or a run")
      ->required();
  command->add_option("--golden", options->golden,
                      "A safetensors file: input_ids, logits, and optionally segment_ids, "
                      "target_mask, grad.NAME, grad_norm");
  command->add_option("--reference", options->reference, "Another model, in place of --golden");
  command->add_option("--tokens", options->tokens,
                      "With --reference: a file of little-endian uint32 token ids, or .npy");
  command->add_option("--text", options->text, "With --reference: a UTF-8 text file");
  command->add_option("--tokenizer", options->tokenizer,
                      "For --text: a tokenizer.json; default: the one beside the model");
  command
      ->add_option("--length", options->length, "Positions of a sequence; default: all there are")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command->add_option("--sequences", options->sequences, "Sequences, one after another (1)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command->add_option("--precision", options->precision, "fp32 or bf16 (fp32)");
  command->add_option("--reference-precision", options->reference_precision,
                      "Of the other model: fp32 or bf16 (fp32)");
  add_import_options(*command, options->import);
  add_machine_options(*command, options->machine);
}

}  // namespace lockstep::cli
