#include "train/run_audit.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/paths.h"
#include "data/audit.h"
#include "io/jsonl.h"
#include "train/recipe.h"
#include "train/training_data.h"

namespace lockstep {
namespace {

// A line of metrics.jsonl as the audit needs it.
struct LoggedBatch {
  std::int64_t step = 0;
  std::uint64_t batch = 0;
  std::string digest;
};

std::vector<LoggedBatch> read_logged(FileSystem& fs, const std::string& path) {
  std::vector<LoggedBatch> out;
  read_jsonl(fs, path, [&](const JsonlLine& line) {
    const std::string what = concat(path, ":", line.number);
    const Json json = parse_json(line.text, what);
    try {
      out.push_back({json.at("step").get<std::int64_t>(), json.at("batch").get<std::uint64_t>(),
                     json.at("batch_digest").get<std::string>()});
    } catch (const Json::exception& error) {
      fail(ErrorKind::kData, printable(what), ": not a metrics line: ", error.what());
    }
  });
  if (out.empty()) fail(ErrorKind::kInput, printable(path), ": no step is logged");
  return out;
}

void count_coverage(const StepPlan& plan, const std::vector<LoggedBatch>& logged, RunAudit& audit) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> batches_of_epoch;
  for (const LoggedBatch& line : logged) {
    batches_of_epoch[plan.epoch_of(line.batch)].push_back(line.batch);
  }
  std::vector<std::uint64_t> entries(plan.spec().batch);
  for (const auto& [epoch, batches] : batches_of_epoch) {
    CoverageCounter counter(plan.spec().instances);
    for (const std::uint64_t batch : batches) {
      plan.entries(batch, 0, entries);
      for (const std::uint64_t id : entries) counter.add(id);
    }
    audit.instances_used += counter.seen_once() + counter.repeated();
    audit.instances_repeated += counter.repeated();
  }
}

void read_again(const TrainingData& data, const std::vector<LoggedBatch>& logged,
                const RunAuditOptions& options, RunAudit& audit) {
  std::uint64_t every = std::max<std::uint64_t>(1, options.every);
  if (options.most_batches > 0) {
    every = std::max(every, (logged.size() + options.most_batches - 1) / options.most_batches);
  }
  std::vector<std::uint64_t> tokens(data.source().labels().size());
  const auto loader = data.loader(0);
  Batch batch;
  for (std::size_t i = 0; i < logged.size(); i += every) {
    const LoggedBatch& line = logged[i];
    if (line.digest.empty()) continue;  // passed over: nothing was read
    if (options.progress) options.progress(line.step, logged.back().step);
    if (loader->step() != line.batch) loader->seek(line.batch);
    loader->next(batch);
    ++audit.batches_checked;
    for (std::size_t k = 0; k < tokens.size(); ++k) tokens[k] += batch.tokens_by_label[k];
    if (batch.digest != line.digest) {
      audit.wrong.push_back({.step = line.step, .logged = line.digest, .found = batch.digest});
    }
  }
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    audit.tokens_by_label.emplace_back(data.source().labels()[k], tokens[k]);
  }
}

}  // namespace

RunAudit audit_run(FileSystem& fs, const std::string& run, const RunAuditOptions& options) {
  const std::vector<std::string> overrides = {concat("run.dir=", run)};
  const Recipe recipe = read_recipe(join_path(run, paths::kRecipe), overrides);
  const auto logged = read_logged(fs, join_path(run, paths::kMetrics));
  ThreadPool pool(ThreadPool::available_cpus());
  const TrainingData data(fs, recipe, pool);
  RunAudit audit;
  audit.steps = logged.size();
  count_coverage(data.plan(), logged, audit);
  read_again(data, logged, options, audit);
  return audit;
}

}  // namespace lockstep
