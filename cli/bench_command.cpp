#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "base/text.h"
#include "cli/command.h"
#include "ops/machine_peak.h"
#include "train/step_bench.h"

namespace lockstep::cli {
namespace {

double giga(double value) { return static_cast<double>(std::lround(value * 1e-8)) / 10; }

struct PeakOptions {
  int threads = 0;
  std::string isa;
  int repetitions = 9;
};

int bench_peak(Context& context, const PeakOptions& options) {
  CpuStream stream(options.threads > 0 ? options.threads : ThreadPool::available_cpus(),
                   options.isa.empty() ? default_isa() : isa_from_name(options.isa));
  const ops::MachinePeak peak =
      ops::measure_peak(stream, options.repetitions, ops::MeasureRead::kYes);
  context.say("instruction set  ", name_of(stream.isa()), ", ", stream.pool().threads(),
              " threads");
  context.say("bf16 products    ", giga(peak.bf16_flops), " GFLOP/s");
  context.say("fp32 products    ", giga(peak.fp32_flops), " GFLOP/s");
  context.say("memory read      ", giga(peak.read_bytes_per_s), " GB/s");
  context.say("balance          ", std::lround(peak.bf16_flops / peak.read_bytes_per_s),
              " bf16 FLOP a byte");
  OrderedJson document;
  document["isa"] = name_of(stream.isa());
  document["threads"] = stream.pool().threads();
  document["bf16_flops"] = peak.bf16_flops;
  document["fp32_flops"] = peak.fp32_flops;
  document["read_bytes_per_s"] = peak.read_bytes_per_s;
  context.result(document);
  return 0;
}

struct StepOptions {
  std::string recipe;
  std::vector<std::string> overrides;
  std::int64_t steps = 3;
};

std::string op_line(const OpTime& op, const StepBench& bench) {
  // What the op takes at least: its flops at the peak, or its bytes at the memory's rate.
  const double floor =
      std::max(op.flops / bench.peak_flops, op.bytes / bench.peak.read_bytes_per_s);
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), "%-24s %6lld %9.2f %6.1f%% %9.1f %9.2f %9.1f%%",
                op.name.c_str(), static_cast<long long>(op.calls / bench.steps),
                op.seconds * 1e3 / static_cast<double>(bench.steps),
                100 * op.seconds / bench.traced_seconds, op.flops / op.seconds * 1e-9,
                op.bytes / op.seconds * 1e-9, 100 * floor / op.seconds);
  return text.data();
}

int bench_step_command(Context& context, const StepOptions& options) {
  const Recipe recipe = read_recipe(options.recipe, options.overrides);
  const StepBench bench = bench_step(recipe, options.steps);
  const auto mfu = [&](double flops) { return flops / bench.median_seconds / bench.peak_flops; };
  OrderedJson document;
  document["tokens_per_s"] = bench.tokens_per_step / bench.median_seconds;
  document["mfu_window_exact"] = mfu(bench.flops.window_exact);
  document["mfu_maxtext"] = mfu(bench.flops.maxtext);
  document["mfu_olmo_core"] = mfu(bench.flops.olmo_core);
  document["step_seconds"] = bench.step_seconds;
  document["median_step_seconds"] = bench.median_seconds;
  document["precision"] = to_name(recipe.train.precision);
  document["peak_bf16_flops"] = bench.peak.bf16_flops;
  document["peak_fp32_flops"] = bench.peak.fp32_flops;
  document["read_bytes_per_s"] = bench.peak.read_bytes_per_s;
  document["peak_memory_bytes"] = bench.peak_memory_bytes;
  document["predicted_memory_bytes"] = bench.predicted_memory_bytes;
  document["ops"] = OrderedJson::array();
  context.say("op                        calls        ms  share   GFLOP/s      GB/s  of roofline");
  for (const auto& op : bench.ops) {
    context.say(op_line(op, bench));
    document["ops"].push_back({{"op", op.name},
                               {"calls", op.calls / bench.steps},
                               {"seconds", op.seconds / static_cast<double>(bench.steps)},
                               {"share", op.seconds / bench.traced_seconds},
                               {"flops", op.flops / static_cast<double>(bench.steps)},
                               {"bytes", op.bytes / static_cast<double>(bench.steps)}});
  }
  context.say("step ", human_seconds(bench.median_seconds), " (median of ", bench.steps, "), ",
              human_count(bench.tokens_per_step / bench.median_seconds), " tokens/s; peak ",
              giga(bench.peak_flops), " GFLOP/s in ", to_name(recipe.train.precision), ", memory ",
              giga(bench.peak.read_bytes_per_s), " GB/s");
  context.say("memory ", human_bytes(static_cast<std::uint64_t>(bench.peak_memory_bytes)),
              " at most, predicted ",
              human_bytes(static_cast<std::uint64_t>(bench.predicted_memory_bytes)));
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(),
                "MFU %.1f%% window-exact, %.1f%% as MaxText counts, %.1f%% as OLMo-core counts",
                100 * mfu(bench.flops.window_exact), 100 * mfu(bench.flops.maxtext),
                100 * mfu(bench.flops.olmo_core));
  context.say(std::string_view(text.data()));
  context.result(document);
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, Context& context) {
  CLI::App* group = app.add_subcommand("bench", "Measures this machine");
  group->require_subcommand(1);
  const auto options = std::make_shared<PeakOptions>();
  CLI::App* peak =
      context.add(*group, "peak", "Measures what the machine can do at most; the base of every MFU",
                  [&context, options] { return bench_peak(context, *options); });
  peak->add_option("--threads", options->threads, "Threads; default: the CPUs of this process")
      ->check(CLI::Range(1, 1024));
  peak->add_option("--isa", options->isa,
                   "portable, avx2, avx512 or avx512_bf16; default: the best");
  peak->add_option("--repetitions", options->repetitions, "Short runs of which the best counts")
      ->check(CLI::Range(1, 1000));

  const auto step_options = std::make_shared<StepOptions>();
  CLI::App* step = context.add(
      *group, "step", "Times a recipe's training step on made-up tokens, as a table by op",
      [&context, step_options] { return bench_step_command(context, *step_options); });
  step->add_option("RECIPE", step_options->recipe, "A recipe file")->required();
  step->add_option("KEY=VALUE", step_options->overrides, "Keys of the recipe to override");
  step->add_option("--steps", step_options->steps, "Timed steps, of which the median counts (3)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{10000}));
}

}  // namespace lockstep::cli
