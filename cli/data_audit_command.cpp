#include <algorithm>
#include <map>
#include <memory>

#include "base/text.h"
#include "checkpoint/paths.h"
#include "cli/data_command.h"
#include "data/audit.h"
#include "io/jsonl.h"
#include "train/recipe.h"
#include "train/training_data.h"

namespace lockstep::cli {
namespace {

struct AuditOptions {
  std::string run;
  std::string kind = "feistel";
  PlanSpec plan;
  std::uint64_t epoch = 1;
  std::vector<std::uint64_t> ranks = {1};
  std::uint64_t every = 1;
};

int audit_plan(Context& context, AuditOptions options) {
  options.plan.kind = order_kind_of_name(options.kind);
  const StepPlan plan(FileSystem::real(), options.plan);
  const PlanAudit audit = audit_epoch(plan, options.epoch, options.ranks);
  context.say("epoch ", options.epoch, ": ", audit.steps, " steps of ", options.plan.batch, "; ",
              audit.seen_once, " of ", audit.instances, " instances once, ", audit.repeated,
              " more than once, ", audit.missed, " never (", audit.dropped_tail,
              " are the dropped tail)");
  context.say(audit.ok() ? "every instance exactly once, batches the same for all rank counts"
                         : "NOT as planned: " + audit.finding);
  context.result({{"ok", audit.ok()},
                  {"epoch", options.epoch},
                  {"steps", audit.steps},
                  {"instances", audit.instances},
                  {"seen_once", audit.seen_once},
                  {"repeated", audit.repeated},
                  {"missed", audit.missed},
                  {"dropped_tail", audit.dropped_tail},
                  {"ranks", options.ranks},
                  {"split_steps", audit.split_steps}});
  return audit.ok() ? 0 : exit_code(ErrorKind::kData);
}

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

// How often the run's steps used each instance of each epoch.
struct Coverage {
  std::uint64_t used = 0;
  std::uint64_t repeated = 0;
};

Coverage coverage_of(const StepPlan& plan, const std::vector<LoggedBatch>& logged) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> batches_of_epoch;
  for (const LoggedBatch& line : logged) {
    batches_of_epoch[plan.epoch_of(line.batch)].push_back(line.batch);
  }
  Coverage coverage;
  std::vector<std::uint64_t> entries(plan.spec().batch);
  for (const auto& [epoch, batches] : batches_of_epoch) {
    CoverageCounter counter(plan.spec().instances);
    for (const std::uint64_t batch : batches) {
      plan.entries(batch, 0, entries);
      for (const std::uint64_t id : entries) counter.add(id);
    }
    coverage.used += counter.seen_once() + counter.repeated();
    coverage.repeated += counter.repeated();
  }
  return coverage;
}

int audit_run(Context& context, const AuditOptions& options) {
  FileSystem& fs = FileSystem::real();
  const std::vector<std::string> overrides = {concat("run.dir=", options.run)};
  const Recipe recipe = read_recipe(join_path(options.run, paths::kRecipe), overrides);
  ThreadPool pool(ThreadPool::available_cpus());
  const TrainingData data(fs, recipe, pool);
  const auto logged = read_logged(fs, join_path(options.run, paths::kMetrics));
  const Coverage coverage = coverage_of(data.plan(), logged);

  std::vector<std::uint64_t> tokens(data.source().labels().size());
  const auto loader = data.loader(0);
  Batch batch;
  std::uint64_t checked = 0;
  OrderedJson wrong = OrderedJson::array();
  for (std::size_t i = 0; i < logged.size(); i += options.every) {
    const LoggedBatch& line = logged[i];
    if (line.digest.empty()) continue;  // passed over: nothing was read
    if (loader->step() != line.batch) loader->seek(line.batch);
    loader->next(batch);
    ++checked;
    for (std::size_t k = 0; k < tokens.size(); ++k) tokens[k] += batch.tokens_by_label[k];
    context.progress(concat("audit step ", line.step, " of ", logged.back().step));
    if (batch.digest == line.digest) continue;
    wrong.push_back({{"step", line.step}, {"logged", line.digest}, {"found", batch.digest}});
    if (wrong.size() <= 5) {
      context.say("step ", line.step, ": batch digest ", printable(line.digest), " was logged, ",
                  batch.digest, " is what the plan gives");
    }
  }
  const bool ok = wrong.empty() && coverage.repeated == 0;
  context.say(logged.size(), " steps logged, ", checked, " batches read again: ", wrong.size(),
              " differ; ", coverage.used, " instances used, ", coverage.repeated,
              " more than once in an epoch");
  OrderedJson by_label = OrderedJson::object();
  for (std::size_t k = 0; k < tokens.size(); ++k) by_label[data.source().labels()[k]] = tokens[k];
  context.result({{"ok", ok},
                  {"steps", logged.size()},
                  {"batches_checked", checked},
                  {"batches_different", wrong.size()},
                  {"different", wrong},
                  {"instances_used", coverage.used},
                  {"instances_repeated", coverage.repeated},
                  {"tokens_by_label", by_label}});
  return ok ? 0 : exit_code(ErrorKind::kData);
}

int audit(Context& context, const AuditOptions& options) {
  if (!options.run.empty()) return audit_run(context, options);
  if (options.plan.instances == 0 || options.plan.batch == 0) {
    fail(ErrorKind::kConfig, "data audit: name a run, or give --instances and --batch");
  }
  return audit_plan(context, options);
}

}  // namespace

void add_data_audit_command(CLI::App& group, Context& context) {
  const auto o = std::make_shared<AuditOptions>();
  CLI::App* command = context.add(
      group, "audit",
      "Checks that an epoch's plan visits every instance once, or that a run's logged batches are "
      "those of its plan",
      [&context, o] { return audit(context, *o); });
  command->add_option("RUN", o->run, "A run directory; without it, the plan of the options below");
  command->add_option("--every", o->every, "Of a run: read every n-th batch again")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--instances", o->plan.instances, "Of a plan");
  command->add_option("--batch", o->plan.batch, "Instances of a step");
  command->add_option("--kind", o->kind, "olmo-core, feistel or sequential")->capture_default_str();
  command->add_option("--seed", o->plan.seed, "Of the order")->capture_default_str();
  command->add_option("--epoch", o->epoch, "From 1")->capture_default_str();
  command->add_option("--ranks", o->ranks, "Numbers of ranks to split batches over")
      ->delimiter(',');
  command->add_option("--cache", o->plan.cache_directory,
                      "Directory where the olmo-core order is kept");
}

}  // namespace lockstep::cli
