#include "train/periodic_tasks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "eval/generate.h"
#include "eval/surfaces.h"
#include "tokenizer/tokenizer.h"
#include "train/run_evaluation.h"

namespace lockstep {
namespace {

OrderedJson number_or_null(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

double heldout_mean(const HeldoutSurface& heldout) {
  double ce = 0;
  std::int64_t targets = 0;
  for (const auto& document : heldout.by_document) {
    ce += document.ce;
    targets += document.targets;
  }
  return ce / static_cast<double>(targets);
}

// What goes into events.jsonl: the file in evals/ holds the rest.
OrderedJson summary_json(const Evaluation& evaluation, const std::string& c4) {
  OrderedJson json = OrderedJson::object();
  if (evaluation.heldout) {
    OrderedJson domains = OrderedJson::object();
    for (const auto& domain : evaluation.heldout->domains) {
      domains[domain.label] = {{"loss", number_or_null(domain.loss)},
                               {"loss_olmo_core", number_or_null(domain.loss_olmo_core)},
                               {"bits_per_byte", number_or_null(domain.bits_per_byte)},
                               {"documents", domain.documents},
                               {"targets", domain.targets}};
    }
    json["loss"] = number_or_null(heldout_mean(*evaluation.heldout));
    json["domains"] = domains;
    if (const auto* domain = c4_domain(*evaluation.heldout, c4); domain != nullptr) {
      json["c4"] = {{"label", domain->label}, {"loss", number_or_null(domain->loss)}};
    }
  }
  if (evaluation.tasks) {
    json["tasks"] = OrderedJson::object();
    for (const auto& task : *evaluation.tasks) {
      json["tasks"][task.name] = {{"n", task.n},
                                  {"acc", number_or_null(task.acc)},
                                  {"acc_norm", number_or_null(task.acc_norm)}};
    }
  }
  if (evaluation.kl) {
    json["kl"] = {{"reference", evaluation.kl->reference},
                  {"tokens", evaluation.kl->tokens},
                  {"mean", number_or_null(evaluation.kl->mean)},
                  {"max", number_or_null(evaluation.kl->max)},
                  {"top1", evaluation.kl->top1}};
  }
  return json;
}

std::string summary_line(const Evaluation& evaluation) {
  std::string line = concat("step ", evaluation.model.step, ":");
  if (evaluation.heldout) {
    line += format(" held-out loss %.4f (", heldout_mean(*evaluation.heldout));
    const auto& domains = evaluation.heldout->domains;
    for (const auto& domain : domains) {
      line +=
          concat(&domain == domains.data() ? "" : ", ", domain.label, format(" %.3f", domain.loss));
    }
    line += ")";
  }
  if (evaluation.tasks) {
    line += evaluation.heldout ? "; acc" : " acc";
    for (const auto& task : *evaluation.tasks)
      line += concat(" ", task.name, format(" %.4f", task.acc));
  }
  if (evaluation.kl) {
    line += concat(evaluation.heldout || evaluation.tasks ? "; token KL" : " token KL",
                   format(" %.3e, at most", evaluation.kl->mean),
                   format(" %.3e, same top token", evaluation.kl->max),
                   format(" %.2f %%", 100 * evaluation.kl->top1));
  }
  return line;
}

// What the task holds on to between evaluations.
struct Evaluator {
  CpuStream stream;
  Surfaces surfaces = {};
};

PeriodicTask evaluation_task(FileSystem& fs, const Recipe& recipe, const Say& say) {
  const EvaluationSources sources = evaluation_sources(recipe);
  if (sources.surfaces.empty()) {
    fail(ErrorKind::kConfig, "eval.interval = ", recipe.eval.interval,
         ": eval.surfaces is empty; name surfaces, or set it to 0");
  }
  const auto evaluator = std::make_shared<Evaluator>(
      Evaluator{CpuStream(recipe.cpu.thread_count(), recipe.cpu.kernel_isa())});
  evaluator->surfaces = open_surfaces(fs, sources, recipe.model, evaluator->stream);
  if (evaluator->surfaces.heldout && !recipe.eval.c4.empty()) {
    const auto& labels = evaluator->surfaces.heldout->documents->labels();
    if (std::find(labels.begin(), labels.end(), recipe.eval.c4) == labels.end()) {
      fail(ErrorKind::kConfig, "eval.c4 = ", printable(recipe.eval.c4), ": no such label in ",
           printable(recipe.eval.mix), "; nearest: ", nearest_name(recipe.eval.c4, labels));
    }
  }
  return {.name = "evaluation",
          .interval = recipe.eval.interval,
          .run = [&fs, say, evaluator, run = recipe.directory(), name = recipe.run.name,
                  c4 = recipe.eval.c4](Model& trained, std::int64_t step,
                                       const std::function<bool()>& stopping) {
            const auto evaluation = evaluate_surfaces(
                trained,
                {.name = name,
                 .step = step,
                 .precision = to_name(trained.options().precision),
                 .producer = "lockstep"},
                evaluator->surfaces, evaluator->stream, {.progress = {}, .stopping = stopping});
            if (!evaluation) return OrderedJson{{"ended_early", true}};
            write_evaluation(fs, evaluation_path(run, step), *evaluation);
            say(summary_line(*evaluation));
            if (evaluator->surfaces.kl && !evaluation->kl) {
              say(concat("step ", step, ": no token KL: ", printable(evaluator->surfaces.kl->name),
                         " has no checkpoint of this step"));
            }
            return summary_json(*evaluation, c4);
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
  if (recipe.eval.interval > 0) tasks.push_back(evaluation_task(fs, recipe, say));
  if (recipe.sample.interval > 0) tasks.push_back(sample_task(fs, recipe, say));
  return tasks;
}

}  // namespace lockstep
