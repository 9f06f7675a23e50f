#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "config/print.h"
#include "train/periodic_tasks.h"
#include "train/plan.h"
#include "train/trainer.h"

namespace lockstep::cli {
namespace {

struct TrainOptions {
  std::string recipe;
  std::vector<std::string> overrides;
  bool dry_run = false;
};

int dry_run(Context& context, const TrainOptions& options) {
  const Recipe recipe = read_recipe(options.recipe, options.overrides);
  const Plan plan = make_plan({.recipe = recipe,
                               .stages = read_stages(options.recipe, recipe),
                               .instances = recipe.data.instances,
                               .isa = recipe.cpu.kernel_isa()});
  context.say(config_toml(recipe));
  context.say(plan_text(plan));
  context.result(OrderedJson::parse(plan_json(plan)));
  return 0;
}

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

std::string bar(double done) {
  constexpr int kWidth = 20;
  const int filled = static_cast<int>(std::lround(done * kWidth));
  std::string text = "[";
  for (int i = 0; i < kWidth; ++i) text += i < filled ? '=' : (i == filled ? '>' : ' ');
  return text + "]";
}

std::string step_line(const StepRecord& record, const TrainProgress& progress) {
  const double done = static_cast<double>(record.step) / static_cast<double>(progress.last_step);
  std::string text = bar(done);
  text += format(" step %lld/%lld  loss %.4f  %s tok/s  MFU %.1f%%  ETA %s",
                 static_cast<long long>(record.step), static_cast<long long>(progress.last_step),
                 record.loss, human_count(record.tokens_per_s).c_str(), record.mfu * 100,
                 human_seconds(progress.seconds_left).c_str());
  if (!record.skipped.empty()) text += "  skipped: " + record.skipped;
  return text;
}

OrderedJson summary_json(const TrainSummary& summary) {
  OrderedJson json;
  json["directory"] = summary.directory;
  json["first_step"] = summary.first_step;
  json["last_step"] = summary.last_step;
  json["tokens"] = summary.tokens;
  json["skipped_total"] = summary.skipped_total;
  json["loss"] = summary.loss;
  json["seconds"] = summary.seconds;
  json["overhead_seconds"] = summary.overhead_seconds;
  json["tokens_per_s"] = summary.tokens_per_s;
  json["mfu"] = summary.mfu;
  json["peak_bf16_flops"] = summary.peak.bf16_flops;
  json["peak_fp32_flops"] = summary.peak.fp32_flops;
  json["replay"] = summary.replay;
  json["stop_signal"] = summary.stop_signal;
  return json;
}

int train_run(Context& context, const TrainOptions& options) {
  if (options.dry_run) return dry_run(context, options);
  const Recipe recipe = read_recipe(options.recipe, options.overrides);
  const std::int64_t interval = recipe.metrics.interval;
  const TrainObserver observer{
      .say = [&](const std::string& text) { context.say(std::string_view(text)); },
      .step =
          [&](const StepRecord& record, const TrainProgress& progress) {
            const bool last = record.step == progress.last_step;
            if (record.step % interval == 0 || last) context.progress(step_line(record, progress));
          }};
  const TrainSummary summary =
      train(FileSystem::real(), recipe, periodic_tasks(FileSystem::real(), recipe, observer.say),
            observer);
  context.end_progress();
  if (summary.first_step > 0) {
    context.say("trained steps ", summary.first_step, " to ", summary.last_step, " in ",
                human_seconds(summary.seconds), ": loss ", format("%.4f", summary.loss), ", ",
                human_count(summary.tokens_per_s), " tokens/s, MFU ",
                format("%.1f%%", summary.mfu * 100), ", ", summary.skipped_total,
                " steps skipped in all; ", printable(summary.directory));
  }
  context.result(summary_json(summary));
  if (summary.stop_signal == 0) return 0;
  context.say("stopped by signal ", summary.stop_signal, " (", strsignal(summary.stop_signal),
              ") and saved; run the same command to go on");
  return exit_code(ErrorKind::kPreempted);
}

}  // namespace

void add_train_command(CLI::App& app, Context& context) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App* command =
      context.add(app, "train", "Trains a recipe's run, from the start or from where it was left",
                  [&context, options] { return train_run(context, *options); });
  command->add_option("RECIPE", options->recipe, "A recipe file (recipes/*.toml)")->required();
  command->add_option("KEY=VALUE", options->overrides,
                      "Keys of the recipe to override, such as optim.lr=1e-3 run.dir=runs/a");
  command->add_flag("--dry-run", options->dry_run,
                    "Print the resolved recipe, sizes, schedule, FLOPs and memory; train nothing");
}

}  // namespace lockstep::cli
