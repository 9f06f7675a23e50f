#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/tokenizer_command.h"
#include "data/corpus.h"
#include "io/file.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_trainer.h"

namespace lockstep::cli {
namespace {

struct TrainTokenizerOptions {
  std::vector<std::string> inputs;
  std::string output;
  TokenizerTraining training;
  CorpusRules rules;
  bool replace_invalid_utf8 = false;
  double heldout = 0;
  std::uint64_t heldout_seed = 0;
  int threads = 0;
};

// The documents of all inputs, in order, but for those held out.
class TrainingDocuments {
 public:
  TrainingDocuments(FileSystem& fs, const TrainTokenizerOptions& options)
      : fs_(fs), options_(options) {
    for (const auto& input : options.inputs) {
      for (auto& file : corpus_files(fs, input)) files_.push_back(std::move(file));
    }
  }

  bool next(std::string& text) {
    while (true) {
      if (!reader_) {
        if (next_file_ == files_.size()) return false;
        reader_ = std::make_unique<CorpusReader>(fs_, files_[next_file_++], options_.rules);
      }
      RawDocument document;
      if (!reader_->next(document)) {
        reader_.reset();
        continue;
      }
      text = reader_->text_of(document);
      const bool held_out = is_held_out(text, options_.heldout, options_.heldout_seed);
      ++(held_out ? held_out_ : used_);
      if (!held_out) return true;
    }
  }

  [[nodiscard]] std::uint64_t used() const { return used_; }
  [[nodiscard]] std::uint64_t held_out() const { return held_out_; }
  [[nodiscard]] std::size_t files() const { return files_.size(); }

 private:
  FileSystem& fs_;
  const TrainTokenizerOptions& options_;
  std::vector<std::string> files_;
  std::size_t next_file_ = 0;
  std::unique_ptr<CorpusReader> reader_;
  std::uint64_t used_ = 0;
  std::uint64_t held_out_ = 0;
};

int train_command(Context& context, TrainTokenizerOptions& options) {
  FileSystem& fs = FileSystem::real();
  if (options.replace_invalid_utf8) options.rules.invalid_utf8 = InvalidUtf8::kReplace;
  TrainingDocuments documents(fs, options);
  options.training.progress = [&](std::uint64_t bytes, std::uint32_t learned) {
    context.progress(learned == 0 ? concat("counting words: ", human_bytes(bytes))
                                  : concat("merging: ", learned, "/", options.training.vocab_size));
  };
  ThreadPool pool(threads_or_cpus(options.threads));
  const std::string json = train_tokenizer([&](std::string& text) { return documents.next(text); },
                                           options.training, pool);
  const Tokenizer tokenizer = Tokenizer::from_json(json, options.output);  // proves it reads back
  fs.create_directories(parent_directory(options.output));
  write_file_atomic(fs, options.output, json);
  context.say(printable(options.output), ": ", with_commas(tokenizer.vocab_size()), " tokens from ",
              with_commas(static_cast<std::int64_t>(documents.used())), " documents in ",
              documents.files(), " files (",
              with_commas(static_cast<std::int64_t>(documents.held_out())),
              " held out), fingerprint ", tokenizer.fingerprint());
  OrderedJson document;
  document["path"] = options.output;
  document["vocab_size"] = tokenizer.vocab_size();
  document["documents"] = documents.used();
  document["held_out_documents"] = documents.held_out();
  document["fingerprint"] = tokenizer.fingerprint();
  context.result(document);
  return 0;
}

}  // namespace

void add_tokenizer_train_command(CLI::App& parent, Context& context) {
  const auto options = std::make_shared<TrainTokenizerOptions>();
  CLI::App* command = context.add(parent, "train", "Learns a byte-level BPE tokenizer from text",
                                  [&context, options] { return train_command(context, *options); });
  command
      ->add_option("INPUT", options->inputs,
                   "Files (.txt, .jsonl; plain, .gz, .zst) or directories of such")
      ->required();
  command->add_option("-o,--output", options->output, "The tokenizer.json to write")->required();
  command->add_option("--vocab-size", options->training.vocab_size,
                      "Ids in all: special tokens, 256 bytes, learned tokens");
  command->add_option("--special-tokens", options->training.special_tokens,
                      "Get the first ids, in this order");
  command->add_option("--pattern", options->training.pattern,
                      "Regular expression that cuts text into words (default: cl100k_base's)");
  command->add_option("--min-frequency", options->training.min_frequency,
                      "Pairs that occur less often are not merged");
  command->add_option("--text-field", options->rules.text_field, "Field of a .jsonl line");
  command->add_flag("--replace-invalid-utf8", options->replace_invalid_utf8,
                    "Put U+FFFD for bytes that are not UTF-8, instead of refusing them");
  command
      ->add_option("--heldout", options->heldout,
                   "Share of documents to leave out, the same ones as of 'lockstep tokenize'")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--heldout-seed", options->heldout_seed, "Chooses the documents left out");
  command->add_option("--threads", options->threads, "Default: as many as CPUs")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace lockstep::cli
