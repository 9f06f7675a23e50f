#include "train/step_bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "base/rng.h"
#include "data/batch.h"
#include "train/learner.h"
#include "train/plan.h"

namespace lockstep {
namespace {

// Ids as frequent as in text, by Zipf's law: the embedding's and the head's memory traffic depend
// on it.
Batch made_up_batch(const Recipe& recipe) {
  const CounterRng rng(1, "bench");
  const auto length = static_cast<std::size_t>(recipe.data.sequence_length);
  const auto rows = static_cast<std::size_t>(recipe.batch.microbatch);
  const auto vocab = static_cast<double>(recipe.model.vocab_size);
  Batch batch;
  std::uint64_t index = 0;
  for (std::int64_t leaf = 0; leaf < recipe.leaves_per_step(); ++leaf) {
    LeafData data;
    data.tokens.resize(rows * length);
    for (auto& id : data.tokens) {
      id =
          static_cast<std::int32_t>(std::min(vocab - 1, std::pow(vocab, rng.uniform(index++)) - 1));
    }
    data.targets.assign(rows * length, kNoTarget);
    for (std::size_t i = 0; i + 1 < rows * length; ++i) {
      if ((i + 1) % length != 0) data.targets[i] = data.tokens[i + 1];
    }
    data.instances.resize(rows);
    data.filtered.assign(rows, 0);
    data.target_count = rows * (length - 1);
    data.real_tokens = rows * length;
    batch.leaves.push_back(std::move(data));
  }
  return batch;
}

ops::MachinePeak better(const ops::MachinePeak& a, const ops::MachinePeak& b) {
  return {.bf16_flops = std::max(a.bf16_flops, b.bf16_flops),
          .fp32_flops = std::max(a.fp32_flops, b.fp32_flops),
          .read_bytes_per_s = std::max(a.read_bytes_per_s, b.read_bytes_per_s)};
}

std::vector<OpTime> by_op(const Trace& trace) {
  std::map<std::string, OpTime> ops;
  for (const auto& event : trace.events()) {
    OpTime& op = ops[event.name];
    op.name = event.name;
    ++op.calls;
    op.seconds += static_cast<double>(event.end_ns - event.begin_ns) * 1e-9;
    op.flops += event.flops;
    op.bytes += event.bytes;
  }
  std::vector<OpTime> list;
  for (auto& [name, op] : ops) list.push_back(op);
  std::sort(list.begin(), list.end(),
            [](const OpTime& a, const OpTime& b) { return a.seconds > b.seconds; });
  return list;
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{1024} * usage.ru_maxrss;
}

}  // namespace

StepBench bench_step(const Recipe& recipe, std::int64_t steps) {
  CpuStream stream(recipe.cpu.thread_count(), recipe.cpu.kernel_isa());
  StepBench bench;
  bench.steps = steps;
  bench.tokens_per_step = static_cast<double>(recipe.tokens_per_step());
  const StepFlops instance = instance_flops(recipe.model, recipe.data.sequence_length);
  const auto instances = static_cast<double>(recipe.instances_per_step());
  bench.flops = {.maxtext = instance.maxtext * instances,
                 .olmo_core = instance.olmo_core * instances,
                 .window_exact = instance.window_exact * instances};
  if (recipe.train.offload == Offload::kDisk) {
    FileSystem::real().create_directories(recipe.directory());
  }
  {
    Learner learner(recipe, stream);
    learner.initialise();
    const Batch batch = made_up_batch(recipe);
    TrainingState state;
    Trace trace(std::size_t{1} << 20);
    const double lr = 1e-6;
    static_cast<void>(learner.step(batch, lr, state));
    bench.peak_memory_bytes = peak_resident_bytes();
    bench.peak = ops::measure_peak(stream, 5, ops::MeasureRead::kNo);
    stream.set_trace(&trace);
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t begin = now_ns();
      static_cast<void>(learner.step(batch, lr, state));
      bench.step_seconds.push_back(static_cast<double>(now_ns() - begin) * 1e-9);
    }
    stream.set_trace(nullptr);
    bench.ops = by_op(trace);
    bench.peak_memory_bytes = std::max(bench.peak_memory_bytes, peak_resident_bytes());
  }
  bench.peak = better(bench.peak, ops::measure_peak(stream, 5, ops::MeasureRead::kYes));
  bench.peak_flops =
      recipe.train.precision == Precision::kBf16 ? bench.peak.bf16_flops : bench.peak.fp32_flops;
  for (const auto& op : bench.ops) bench.traced_seconds += op.seconds;
  std::vector<double> sorted = bench.step_seconds;
  std::sort(sorted.begin(), sorted.end());
  bench.median_seconds = sorted[sorted.size() / 2];
  bench.predicted_memory_bytes = plan_memory(recipe, 1, stream.isa()).step_total();
  return bench;
}

}  // namespace lockstep
