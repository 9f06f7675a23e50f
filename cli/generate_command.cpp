#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/model_source.h"
#include "eval/generate.h"
#include "tokenizer/tokenizer.h"

namespace lockstep::cli {
namespace {

struct GenerateOptions {
  std::string model;
  std::string prompt;
  std::vector<std::int32_t> prompt_ids;
  std::string tokenizer;
  std::string precision = "bf16";
  SamplingConfig sampling;
  bool ignore_eos = false;
  HfImportOptions import;
  MachineOptions machine;
};

std::vector<std::int32_t> prompt_of(const GenerateOptions& options, const Tokenizer* tokenizer,
                                    const ModelConfig& config) {
  std::vector<std::int32_t> ids = options.prompt_ids;
  if (ids.empty() && !options.prompt.empty()) {
    if (tokenizer == nullptr) {
      fail(ErrorKind::kInput, printable(options.model),
           ": no tokenizer.json beside the model; name one with --tokenizer or give --prompt-ids");
    }
    const auto encoded = tokenizer->encode(options.prompt, Special::kParse);
    ids.assign(encoded.begin(), encoded.end());
  }
  if (ids.empty() && config.eos_token_id >= 0) {
    ids.push_back(static_cast<std::int32_t>(config.eos_token_id));  // what a document starts after
  }
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= config.vocab_size) {
      fail(ErrorKind::kInput, "prompt token ", id, ": the model's ids are below ",
           config.vocab_size);
    }
  }
  return ids;
}

int run_generate(Context& context, const GenerateOptions& options) {
  FileSystem& fs = FileSystem::real();
  CpuStream stream = make_stream(options.machine);
  const HfModel source(fs, model_directory(fs, options.model), options.import);
  std::unique_ptr<const Tokenizer> tokenizer;
  if (const std::string path = tokenizer_path(fs, options.model, options.tokenizer);
      !path.empty()) {
    tokenizer = std::make_unique<const Tokenizer>(Tokenizer::load(fs, path));
  }
  const std::vector<std::int32_t> prompt = prompt_of(options, tokenizer.get(), source.config());
  const auto model = load_model(
      source, {.precision = precision_of_name(options.precision), .use = Weights::Use::kForward},
      stream);
  SamplingConfig sampling = options.sampling;
  sampling.stop_at_eos = !options.ignore_eos;
  std::int64_t produced = 0;
  std::int64_t first_ns = 0;  // when the first token came: what went before is the prompt's
  std::int64_t last_ns = 0;
  const std::vector<std::int32_t> ids = generate(*model, prompt, sampling, [&](std::int32_t) {
    last_ns = now_ns();
    if (first_ns == 0) first_ns = last_ns;
    context.progress(concat(++produced, " of at most ", sampling.max_tokens, " tokens"));
    return true;
  });
  context.end_progress();
  OrderedJson document;
  document["prompt_ids"] = prompt;
  document["ids"] = ids;
  document["tokens_per_s"] = nullptr;  // of two tokens on
  if (produced > 1) {
    document["tokens_per_s"] =
        static_cast<double>(produced - 1) * 1e9 / static_cast<double>(last_ns - first_ns);
  }
  document["stopped_at_eos"] = std::ssize(ids) < sampling.max_tokens;
  if (tokenizer != nullptr) {
    const std::vector<std::uint32_t> unsigned_ids(ids.begin(), ids.end());
    const std::string text = tokenizer->decode(unsigned_ids);
    document["text"] = text;
    context.say(options.prompt, text);
  } else {
    document["text"] = nullptr;
    std::string line;
    for (const std::int32_t id : ids) line += (line.empty() ? "" : " ") + std::to_string(id);
    context.say(line);
  }
  context.result(document);
  return 0;
}

}  // namespace

void add_generate_command(CLI::App& app, Context& context) {
  const auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = context.add(app, "generate", "Continues a prompt",
                                  [&context, options] { return run_generate(context, *options); });
  command->add_option("--model", options->model, "A Hugging Face directory, a checkpoint or a run")
      ->required();
  CLI::Option* prompt = command->add_option(
      "--prompt", options->prompt, "The text to continue; default: the start of a document");
  command->add_option("--prompt-ids", options->prompt_ids, "The same as token ids")
      ->delimiter(',')
      ->excludes(prompt);
  command->add_option("--tokenizer", options->tokenizer,
                      "A tokenizer.json; default: the one beside the model");
  command->add_option("--max-tokens", options->sampling.max_tokens, "Tokens at most (64)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  command
      ->add_option("--temperature", options->sampling.temperature,
                   "0: the most likely token, always (0)")
      ->check(CLI::Range(0.0, 100.0));
  command
      ->add_option("--top-p", options->sampling.top_p,
                   "Sample from the fewest most likely tokens with this probability (1)")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--seed", options->sampling.seed, "Of the draws (0)");
  command->add_flag("--ignore-eos", options->ignore_eos, "Go on past the end of a document");
  command->add_option("--precision", options->precision, "fp32 or bf16 (bf16)");
  add_import_options(*command, options->import);
  add_machine_options(*command, options->machine);
}

}  // namespace lockstep::cli
