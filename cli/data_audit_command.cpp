#include <memory>

#include "base/text.h"
#include "cli/data_command.h"
#include "data/audit.h"
#include "train/run_audit.h"

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

int audit_logged(Context& context, const AuditOptions& options) {
  const RunAudit audit =
      audit_run(FileSystem::real(), options.run,
                {.every = options.every, .progress = [&](std::int64_t step, std::int64_t last) {
                   context.progress(concat("audit step ", step, " of ", last));
                 }});
  OrderedJson wrong = OrderedJson::array();
  for (const auto& each : audit.wrong) {
    wrong.push_back({{"step", each.step}, {"logged", each.logged}, {"found", each.found}});
    if (wrong.size() <= 5) {
      context.say("step ", each.step, ": batch digest ", printable(each.logged), " was logged, ",
                  each.found, " is what the plan gives");
    }
  }
  context.say(audit.steps, " steps logged, ", audit.batches_checked,
              " batches read again: ", wrong.size(), " differ; ", audit.instances_used,
              " instances used, ", audit.instances_repeated, " more than once in an epoch");
  OrderedJson by_label = OrderedJson::object();
  for (const auto& [label, tokens] : audit.tokens_by_label) by_label[label] = tokens;
  context.result({{"ok", audit.ok()},
                  {"steps", audit.steps},
                  {"batches_checked", audit.batches_checked},
                  {"batches_different", wrong.size()},
                  {"different", wrong},
                  {"instances_used", audit.instances_used},
                  {"instances_repeated", audit.instances_repeated},
                  {"tokens_by_label", by_label}});
  return audit.ok() ? 0 : exit_code(ErrorKind::kData);
}

int audit(Context& context, const AuditOptions& options) {
  if (!options.run.empty()) return audit_logged(context, options);
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
