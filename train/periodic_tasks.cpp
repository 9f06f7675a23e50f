#include "train/periodic_tasks.h"

#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/paths.h"
#include "data/heldout.h"
#include "data/mix.h"
#include "eval/generate.h"
#include "eval/heldout.h"
#include "eval/token_bytes.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

OrderedJson number_or_null(double value) {
  return value == value ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson heldout_json(const HeldoutReport& report) {
  OrderedJson domains = OrderedJson::object();
  for (const auto& domain : report.domains) {
    domains[domain.label] = {{"loss", number_or_null(domain.strict())},
                             {"loss_olmo_core", number_or_null(domain.olmo_core())},
                             {"bits_per_byte", number_or_null(domain.bits_per_byte())},
                             {"documents", domain.documents},
                             {"targets", domain.targets}};
  }
  return {{"loss", number_or_null(report.total().strict())}, {"domains", domains}};
}

PeriodicTask heldout_task(FileSystem& fs, const Recipe& recipe, const Say& say) {
  const ModelConfig& model = recipe.model;
  const EvalConfig& eval = recipe.eval;
  if (eval.mix.empty()) {
    fail(ErrorKind::kConfig, "eval.interval = ", eval.interval,
         ": name the held-out files with eval.mix, or set it to 0");
  }
  const HeldoutSpec spec{
      .base_directory = eval.base_dir.empty() ? recipe.data.base_dir : eval.base_dir,
      .width = recipe.data.token_type,
      .end_of_text = static_cast<std::uint32_t>(model.eos_token_id),
      .padding = 0,
      .sequence_length = static_cast<std::uint64_t>(recipe.data.sequence_length),
      .vocabulary = {.size = static_cast<std::uint32_t>(model.vocab_size),
                     .rows = static_cast<std::uint32_t>(model.vocab_rows())}};
  const auto documents =
      std::make_shared<HeldoutDocuments>(fs, spec, read_mix(fs, eval.mix, recipe.data.tokenizer));
  const auto bytes = std::make_shared<std::vector<std::int32_t>>();
  if (!recipe.data.tokenizer_file.empty()) {
    *bytes = bytes_of_tokens(Tokenizer::load(fs, recipe.data.tokenizer_file), model.vocab_size);
  }
  const std::string directory = join_path(recipe.directory(), paths::kEvals);
  return {.name = "evaluation",
          .interval = eval.interval,
          .run = [&fs, say, eval, documents, bytes, directory](
                     Model& trained, std::int64_t step, const std::function<bool()>& stopping) {
            const HeldoutReport report = evaluate_heldout(trained, *documents,
                                                          {.batch = eval.batch,
                                                           .max_documents = eval.max_documents,
                                                           .bytes_of_token = *bytes,
                                                           .progress = {},
                                                           .stopping = stopping});
            OrderedJson json = heldout_json(report);
            if (stopping()) return OrderedJson{{"ended_early", true}};
            fs.create_directories(directory);
            write_file_atomic(fs, join_path(directory, paths::checkpoint_name(step) + ".json"),
                              std::string_view(json.dump(1) + "\n"));
            char text[64];
            std::snprintf(text, sizeof text, "%.4f", report.total().strict());
            std::string line = concat("step ", step, ": held-out loss ", text, " (");
            for (const auto& domain : report.domains) {
              std::snprintf(text, sizeof text, "%.3f", domain.strict());
              line += concat(&domain == report.domains.data() ? "" : ", ", domain.label, " ", text);
            }
            say(line + ")");
            return json;
          }};
}

PeriodicTask sample_task(FileSystem& fs, const Recipe& recipe, const Say& say) {
  if (recipe.data.tokenizer_file.empty()) {
    fail(ErrorKind::kConfig, "sample.interval = ", recipe.sample.interval,
         ": set data.tokenizer_file, or sample.interval to 0");
  }
  const auto tokenizer =
      std::make_shared<const Tokenizer>(Tokenizer::load(fs, recipe.data.tokenizer_file));
  const SampleConfig sample = recipe.sample;
  std::vector<std::int32_t> prompt;
  for (const std::uint32_t id : tokenizer->encode(sample.prompt, Special::kText)) {
    prompt.push_back(static_cast<std::int32_t>(id));
  }
  if (prompt.empty()) prompt.push_back(static_cast<std::int32_t>(recipe.model.eos_token_id));
  return {.name = "sample",
          .interval = sample.interval,
          .run = [say, tokenizer, sample, prompt](Model& trained, std::int64_t step,
                                                  const std::function<bool()>& stopping) {
            const auto ids = generate(trained, prompt,
                                      {.temperature = sample.temperature,
                                       .top_p = sample.top_p,
                                       .seed = static_cast<std::uint64_t>(sample.seed),
                                       .max_tokens = sample.tokens},
                                      [&](std::int32_t) { return !stopping(); });
            const std::vector<std::uint32_t> text_ids(ids.begin(), ids.end());
            const std::string text = tokenizer->decode(text_ids);
            say(concat("step ", step, ": ", printable(sample.prompt), printable(text, 600)));
            return OrderedJson{{"prompt", sample.prompt}, {"text", text}};
          }};
}

}  // namespace

std::vector<PeriodicTask> periodic_tasks(FileSystem& fs, const Recipe& recipe, const Say& say) {
  std::vector<PeriodicTask> tasks;
  if (recipe.eval.interval > 0) tasks.push_back(heldout_task(fs, recipe, say));
  if (recipe.sample.interval > 0) tasks.push_back(sample_task(fs, recipe, say));
  return tasks;
}

}  // namespace lockstep
