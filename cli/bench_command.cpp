#include <cmath>
#include <memory>
#include <string>

#include "cli/command.h"
#include "ops/machine_peak.h"

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
                   options.isa.empty() ? best_isa() : isa_from_name(options.isa));
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
}

}  // namespace lockstep::cli
