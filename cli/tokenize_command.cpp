#include <memory>

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "data/tokenize.h"
#include "tokenizer/tokenizer.h"

namespace lockstep::cli {
namespace {

struct TokenizeOptions {
  std::string tokenizer;
  std::vector<std::string> inputs;
  TokenizeSpec spec;
  std::string dtype = "uint32";
  std::string invalid_utf8 = "refuse";
  std::optional<std::uint32_t> end_of_text;
  bool special = false;
  int threads = 0;
};

// LABEL=PATH; inputs of one label are joined in the order given.
std::vector<CorpusInput> parse_inputs(FileSystem& fs, const std::vector<std::string>& texts) {
  std::vector<CorpusInput> inputs;
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) {
      fail(ErrorKind::kConfig, "'", printable(text), "' is not LABEL=PATH");
    }
    const std::string label = text.substr(0, equals);
    auto files = corpus_files(fs, text.substr(equals + 1));
    auto known = inputs.begin();
    while (known != inputs.end() && known->label != label) ++known;
    if (known == inputs.end()) known = inputs.insert(known, {label, {}});
    known->files.insert(known->files.end(), files.begin(), files.end());
  }
  return inputs;
}

std::uint32_t end_of_text_of(const TokenizeOptions& options, const Tokenizer& tokenizer) {
  const auto id = options.end_of_text ? options.end_of_text : tokenizer.eos_id();
  if (!id) {
    fail(ErrorKind::kConfig, printable(options.tokenizer),
         ": no token is known to end a text; name its id with --eos");
  }
  if (!tokenizer.has_token(*id)) {
    fail(ErrorKind::kConfig, "--eos ", *id, " is no token of ", printable(options.tokenizer));
  }
  return *id;
}

OrderedJson part_json(const TokenizedPart& part) {
  return {{"documents", part.documents},
          {"tokens", part.tokens},
          {"text_bytes", part.text_bytes},
          {"files", part.files}};
}

int tokenize(Context& context, TokenizeOptions options) {
  FileSystem& fs = FileSystem::real();
  const Tokenizer tokenizer = Tokenizer::load(fs, options.tokenizer);
  TokenizeSpec& spec = options.spec;
  spec.width = token_width_of_name(options.dtype);
  spec.end_of_text = end_of_text_of(options, tokenizer);
  spec.tokenizer_fingerprint = tokenizer.fingerprint();
  spec.rules.invalid_utf8 =
      options.invalid_utf8 == "replace" ? InvalidUtf8::kReplace : InvalidUtf8::kRefuse;
  const Special special = options.special ? Special::kParse : Special::kText;
  ThreadPool pool(options.threads > 0 ? options.threads : ThreadPool::available_cpus());
  const std::int64_t start = now_ns();
  const auto seconds = [&] { return static_cast<double>(now_ns() - start) * 1e-9; };
  const auto labels = tokenize_corpus(
      fs, spec, parse_inputs(fs, options.inputs),
      [&](std::string_view text, int, std::vector<std::uint32_t>& ids) {
        tokenizer.encode(text, special, ids);
      },
      pool,
      [&](const TokenizeProgress& p) {
        const double done = p.bytes_total == 0 ? 1.0
                                               : static_cast<double>(p.bytes_done) /
                                                     static_cast<double>(p.bytes_total);
        context.progress(concat("tokenize ", static_cast<int>(100 * done), "%  ",
                                with_commas(static_cast<std::int64_t>(p.documents)), " documents  ",
                                human_count(static_cast<double>(p.tokens)), " tokens  ETA ",
                                human_seconds(done > 0 ? seconds() * (1 - done) / done : 0), "  ",
                                printable(p.file, 60)));
      });
  OrderedJson document = {{"directory", spec.output_directory},
                          {"tokenizer", spec.tokenizer_fingerprint},
                          {"end_of_text", spec.end_of_text},
                          {"labels", OrderedJson::array()}};
  std::uint64_t bytes = 0;
  for (const TokenizedLabel& label : labels) {
    bytes += label.train.text_bytes + label.heldout.text_bytes;
    context.say(label.label, ": ", label.train.documents, " documents, ",
                human_count(static_cast<double>(label.train.tokens)), " tokens; held out ",
                label.heldout.documents, " documents, ",
                human_count(static_cast<double>(label.heldout.tokens)), " tokens");
    document["labels"].push_back({{"label", label.label},
                                  {"train", part_json(label.train)},
                                  {"heldout", part_json(label.heldout)},
                                  {"empty_documents", label.empty_documents}});
  }
  context.say(printable(spec.output_directory), ": ", human_bytes(bytes), " of text in ",
              human_seconds(seconds()));
  document["text_bytes"] = bytes;
  document["seconds"] = seconds();
  context.result(document);
  return 0;
}

}  // namespace

void add_tokenize_command(CLI::App& app, Context& context) {
  const auto o = std::make_shared<TokenizeOptions>();
  CLI::App* command = context.add(
      app, "tokenize",
      "Turns .txt and .jsonl files (plain, .gz, .zst) into token files, their document lists and "
      "mix manifests",
      [&context, o] { return tokenize(context, *o); });
  command->add_option("INPUT", o->inputs, "LABEL=PATH: a file, or a directory of such files")
      ->required();
  command->add_option("--tokenizer", o->tokenizer, "tokenizer.json")->required();
  command->add_option("-o,--output", o->spec.output_directory, "Directory to write into")
      ->required();
  command->add_option("--dtype", o->dtype, "Token type")
      ->check(CLI::IsMember({"uint16", "uint32"}))
      ->capture_default_str();
  command->add_option("--eos", o->end_of_text, "Id put behind every document [the tokenizer's]");
  command->add_flag("--special", o->special,
                    "Text of special tokens inside documents becomes those tokens");
  command->add_option("--text-field", o->spec.rules.text_field, "Field of a .jsonl line")
      ->capture_default_str();
  command->add_option("--separator", o->spec.rules.separator,
                      "Line that ends a document of a .txt file [the file is one document]");
  command->add_option("--invalid-utf8", o->invalid_utf8, "What to do with malformed text")
      ->check(CLI::IsMember({"refuse", "replace"}))
      ->capture_default_str();
  command
      ->add_option("--heldout", o->spec.heldout_fraction,
                   "Share of the documents kept out of the mix, by a hash of their text")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--heldout-seed", o->spec.heldout_seed, "Another choice of them");
  command->add_option("--max-file-tokens", o->spec.max_file_tokens, "Begin a new file past this")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--threads", o->threads, "[all CPUs]; no result depends on it")
      ->check(CLI::Range(1, 1024));
}

}  // namespace lockstep::cli
