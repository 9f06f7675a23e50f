#include "cli/data_command.h"

#include <cmath>
#include <memory>
#include <numbers>
#include <optional>

#include "base/text.h"
#include "cli/command.h"
#include "data/index.h"
#include "data/order.h"
#include "data/stats.h"
#include "tokenizer/tokenizer.h"

namespace lockstep::cli {
namespace {

// Options that several of the commands share.
struct MixOptions {
  std::string mix;
  std::optional<std::string> base_directory;
  std::string tokenizer_name;
  std::string dtype = "uint32";

  void add_to(CLI::App& command) {
    command.add_option("MIX", mix, "Mix manifest: lines label,path")->required();
    command.add_option("--base-dir", base_directory,
                       "Where the manifest's paths start [its own directory]");
    command.add_option("--tokenizer-name", tokenizer_name, "Put in place of {TOKENIZER}");
    command.add_option("--dtype", dtype, "Of headerless token files")
        ->check(CLI::IsMember({"uint16", "uint32"}))
        ->capture_default_str();
  }
  [[nodiscard]] std::string base() const {
    return base_directory ? *base_directory : parent_directory(mix);
  }
};

std::string number(std::uint64_t value) { return with_commas(static_cast<std::int64_t>(value)); }

struct OrderOptions {
  std::string kind = "feistel";
  OrderSpec spec;
  std::uint64_t start = 0;
  std::optional<std::uint64_t> count;
};

int order(Context& context, OrderOptions options) {
  options.spec.kind = order_kind_of_name(options.kind);
  const std::uint64_t n = options.spec.instances;
  if (options.start > n) {
    fail(ErrorKind::kConfig, "--start ", options.start, " of ", n, " instances");
  }
  const std::uint64_t count = options.count.value_or(n - options.start);
  if (count > n - options.start) {
    fail(ErrorKind::kConfig, "--start ", options.start, " --count ", count, " of ", n,
         " instances");
  }
  const auto made = make_order(FileSystem::real(), options.spec);
  OrderedJson document = {{"kind", options.kind},        {"seed", options.spec.seed},
                          {"epoch", options.spec.epoch}, {"instances", n},
                          {"start", options.start},      {"order", OrderedJson::array()}};
  std::string lines;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t instance = made->instance(options.start + i);
    if (context.json()) {
      document["order"].push_back(instance);
      continue;
    }
    lines += std::to_string(instance) + '\n';
    if (lines.size() > (1U << 16U) || i + 1 == count) {
      context.say(lines);
      lines.clear();
    }
  }
  context.result(document);
  return 0;
}

struct IndexOptions {
  MixOptions mix;
  std::uint64_t sequence_length = 0;
  std::string tokenizer;
  std::string output;
  bool digest = false;
};

int index(Context& context, const IndexOptions& options) {
  FileSystem& fs = FileSystem::real();
  ThreadPool pool(ThreadPool::available_cpus());
  const IndexSpec spec = {.sequence_length = options.sequence_length,
                          .width = token_width_of_name(options.mix.dtype),
                          .tokenizer = options.tokenizer,
                          .base_directory = options.mix.base()};
  const auto mix = read_mix(fs, options.mix.mix, options.mix.tokenizer_name);
  const bool saved = !options.output.empty() && fs.exists(options.output);
  const DataIndex made =
      saved ? open_index(fs, spec, mix, options.output, pool)
            : DataIndex::build(fs, spec, mix, pool,
                               options.digest ? ContentDigest::kYes : ContentDigest::kNo);
  if (!options.output.empty() && !saved) made.save(fs, options.output);
  context.say(number(made.files().size()), " files, ", number(made.tokens()), " tokens, ",
              number(made.instances()), " instances of ", number(options.sequence_length),
              ", fingerprint ", made.fingerprint());
  if (saved) context.say(printable(options.output), ": equal to the saved index");
  context.result({{"files", made.files().size()},
                  {"tokens", made.tokens()},
                  {"instances", made.instances()},
                  {"sequence_length", options.sequence_length},
                  {"fingerprint", made.fingerprint()},
                  {"checked_against_saved", saved}});
  return 0;
}

struct StatsOptions {
  MixOptions mix;
  std::string tokenizer;
  std::optional<std::uint32_t> vocab_size;
  std::optional<std::uint32_t> end_of_text;
};

StatsSpec stats_spec(FileSystem& fs, const StatsOptions& options) {
  auto size = options.vocab_size;
  auto end = options.end_of_text;
  if (!options.tokenizer.empty()) {
    const Tokenizer tokenizer = Tokenizer::load(fs, options.tokenizer);
    if (!size) size = tokenizer.vocab_size();
    if (!end) end = tokenizer.eos_id();
  }
  if (!size || !end) {
    fail(ErrorKind::kConfig, "data stats: give --tokenizer, or both --vocab-size and --eos");
  }
  return {.base_directory = options.mix.base(),
          .width = token_width_of_name(options.mix.dtype),
          .end_of_text = *end,
          .vocabulary = {*size, *size}};
}

int stats(Context& context, const StatsOptions& options) {
  FileSystem& fs = FileSystem::real();
  ThreadPool pool(ThreadPool::available_cpus());
  const auto mix = read_mix(fs, options.mix.mix, options.mix.tokenizer_name);
  OrderedJson document = {{"labels", OrderedJson::array()}};
  for (const LabelStats& s : mix_stats(fs, stats_spec(fs, options), mix, pool)) {
    context.say(printable(s.label), ": ", number(s.tokens), " tokens in ", number(s.files),
                " files, ", number(s.documents), " documents of ", number(s.shortest), " to ",
                number(s.longest), " tokens (median ", number(s.median), "), ids ", s.smallest_id,
                "..", s.largest_id, " (", number(s.distinct_ids), " distinct), unigram entropy ",
                s.unigram_entropy, " nats");
    document["labels"].push_back({{"label", s.label},
                                  {"files", s.files},
                                  {"tokens", s.tokens},
                                  {"documents", s.documents},
                                  {"document_tokens_min", s.shortest},
                                  {"document_tokens_median", s.median},
                                  {"document_tokens_max", s.longest},
                                  {"id_min", s.smallest_id},
                                  {"id_max", s.largest_id},
                                  {"ids_distinct", s.distinct_ids},
                                  {"unigram_entropy_nats", s.unigram_entropy},
                                  {"unigram_entropy_bits", s.unigram_entropy / std::numbers::ln2}});
  }
  context.result(document);
  return 0;
}

void add_order(CLI::App& group, Context& context) {
  const auto o = std::make_shared<OrderOptions>();
  CLI::App* command =
      context.add(group, "order", "Prints the order in which an epoch visits its instances",
                  [&context, o] { return order(context, *o); });
  command->add_option("--kind", o->kind, "olmo-core, feistel or sequential")->capture_default_str();
  command->add_option("--seed", o->spec.seed, "Of the order")->required();
  command->add_option("--epoch", o->spec.epoch, "From 1")->capture_default_str();
  command->add_option("--instances", o->spec.instances, "Of the whole epoch")->required();
  command->add_option("--start", o->start, "First position printed")->capture_default_str();
  command->add_option("--count", o->count, "Positions printed [all that follow]");
  command->add_option("--cache", o->spec.cache_directory,
                      "Directory where the olmo-core order is kept");
}

void add_index(CLI::App& group, Context& context) {
  const auto o = std::make_shared<IndexOptions>();
  CLI::App* command = context.add(
      group, "index", "Counts the instances of a mix, and saves the index or checks a saved one",
      [&context, o] { return index(context, *o); });
  o->mix.add_to(*command);
  command->add_option("--sequence-length", o->sequence_length, "Tokens of an instance")
      ->required()
      ->check(CLI::PositiveNumber);
  command->add_option("--tokenizer-fingerprint", o->tokenizer, "Recorded in the index");
  command->add_option("-o,--output", o->output, "The index file");
  command->add_flag("--digest", o->digest, "Record a hash of every file's tokens (reads them all)");
}

void add_stats(CLI::App& group, Context& context) {
  const auto o = std::make_shared<StatsOptions>();
  CLI::App* command = context.add(
      group, "stats", "Tokens, documents, lengths, ids and unigram entropy of a mix by label",
      [&context, o] { return stats(context, *o); });
  o->mix.add_to(*command);
  command->add_option("--tokenizer", o->tokenizer, "tokenizer.json");
  command->add_option("--vocab-size", o->vocab_size, "Ids from here on are refused");
  command->add_option("--eos", o->end_of_text, "Id that ends a document");
}

}  // namespace

void add_data_command(CLI::App& app, Context& context) {
  CLI::App* group = app.add_subcommand("data", "Indexes, orders, audits and describes token data");
  group->require_subcommand(1);
  add_index(*group, context);
  add_order(*group, context);
  add_data_audit_command(*group, context);
  add_stats(*group, context);
}

}  // namespace lockstep::cli
