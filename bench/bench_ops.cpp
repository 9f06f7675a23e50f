// Ops that are limited by memory, as shares of this machine's bandwidth measured beside them. Each
// round measures the machine and then every op once; a share is the median over rounds of the op's
// bytes per second over that round's. One JSON line a case:
//   of_read: over a read of memory far larger than the caches
//   of_update: over a = a + b in place (two reads and a write, the mix of most of these ops)
//
//   bench_ops [threads [isa [rounds]]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench/bench.h"
#include "ops/adamw.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/machine_peak.h"
#include "ops/qk_norm_rope.h"
#include "ops/rms_norm.h"
#include "ops/run.h"
#include "ops/swiglu.h"

namespace lockstep {
namespace {

// Shapes of the 190M preset, with rows enough that no tensor stays in a cache.
constexpr std::int64_t kRows = 32768;
constexpr std::int64_t kWidth = 768;
constexpr std::int64_t kHidden = 3072;
constexpr std::int64_t kHalfHead = 32;
constexpr std::int64_t kVocab = 100352;
constexpr std::int64_t kPositions = 1024;
constexpr std::int64_t kParameters = 48 << 20;

struct Case {
  std::string name;
  double bytes;
  std::function<void()> run;
  std::vector<double> rates = {};
};

class Bench {
 public:
  explicit Bench(CpuStream& stream) : stream_(&stream) {}

  template <class Op>
  void add(const char* variant, const Op& op) {
    cases_.push_back(
        {std::string(Op::kName) + variant, op.bytes(), [this, op] { ops::run(*stream_, op); }});
  }

  void measure(int rounds) {
    for (Case& c : cases_) c.run();  // pages touched, threads awake
    for (int round = 0; round < rounds; ++round) {
      read_.push_back(ops::measure_peak(*stream_, 1, ops::MeasureRead::kYes).read_bytes_per_s);
      for (Case& c : cases_) {
        const std::int64_t begin = now_ns();
        c.run();
        c.rates.push_back(c.bytes / (static_cast<double>(now_ns() - begin) * 1e-9));
      }
    }
  }

  // The first case is the yardstick of of_update.
  void print() const {
    for (const Case& c : cases_) {
      std::printf("{\"case\":\"%s\",\"gb_per_s\":%.1f,\"of_read\":%.3f,\"of_update\":%.3f}\n",
                  c.name.c_str(), median(c.rates) * 1e-9, ratio(c.rates, read_),
                  ratio(c.rates, cases_.front().rates));
    }
  }

 private:
  static double ratio(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
    return median(ratios);
  }

  CpuStream* stream_;
  std::vector<Case> cases_;
  std::vector<double> read_;
};

void add_rows(Bench& bench, Memory& memory) {
  const View wide32 = memory.random(DType::kF32, {kRows, kWidth});
  const View stream32 = memory.random(DType::kF32, {kRows, kWidth});
  const View a16 = memory.random(DType::kBF16, {kRows, kWidth});
  const View b16 = memory.random(DType::kBF16, {kRows, kWidth});
  const View rstd = memory.random(DType::kF32, {kRows});
  const View weight = memory.random(DType::kF32, {kWidth});
  const View dweight = memory.random(DType::kF32, {kWidth});
  bench.add("", ops::RmsNormForward{.y = b16, .rstd = rstd, .x = a16, .weight = weight});
  bench.add(
      "",
      ops::RmsNormBackward{
          .dx = b16, .dweight = dweight, .dy = wide32, .x = a16, .rstd = rstd, .weight = weight});
  bench.add("", ops::NormResidualForward{.h = stream32,
                                         .h_rounded = b16,
                                         .rstd = rstd,
                                         .a = a16,
                                         .x = stream32,
                                         .weight = weight});
  const View cos = memory.random(DType::kF32, {kPositions, kHalfHead});
  const View sin = memory.random(DType::kF32, {kPositions, kHalfHead});
  bench.add("", ops::QkNormRopeForward{.y = b16.split(0, kRows / kPositions),
                                       .rstd = rstd,
                                       .x = a16.split(0, kRows / kPositions),
                                       .weight = weight,
                                       .cos = cos,
                                       .sin = sin});
  const View c16 = memory.random(DType::kBF16, {kRows, kWidth});
  bench.add("", ops::QkNormRopeBackward{.dx = c16.split(0, kRows / kPositions),
                                        .dweight = dweight,
                                        .dy = b16.split(0, kRows / kPositions),
                                        .x = a16.split(0, kRows / kPositions),
                                        .rstd = rstd,
                                        .weight = weight,
                                        .cos = cos,
                                        .sin = sin});
  bench.add("_to_bf16", ops::Cast{.y = b16, .x = wide32});
  const View tokens = memory.random_ids({kRows}, kVocab);
  const View table = memory.random(DType::kF32, {kVocab, kWidth});
  bench.add(
      "", ops::EmbeddingForward{.y = wide32, .y_rounded = b16, .tokens = tokens, .weight = table});
  bench.add("", ops::EmbeddingBackward{.dweight = table, .tokens = tokens, .dy = wide32});
}

int main_checked(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : ThreadPool::available_cpus();
  const Isa isa = argc > 2 ? isa_from_name(argv[2]) : default_isa();
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 9;
  if (rounds < 1) fail(ErrorKind::kConfig, "rounds = ", rounds, ": must be at least 1");
  CpuStream stream(threads, isa);
  Memory memory;
  Bench bench(stream);

  const View p = memory.random(DType::kF32, {kParameters});
  const View m = memory.random(DType::kF32, {kParameters});
  const View v = memory.random(DType::kF32, {kParameters});
  const View g = memory.random(DType::kF32, {kParameters});
  for (std::int64_t i = 0; i < kParameters; ++i) v.data<float>()[i] = 1;
  bench.add("_in_place", ops::Add{.y = p, .a = p, .b = g});
  bench.add("", ops::AdamWStep{.p = p, .m = m, .v = v, .g = g, .step_size = 1e-4F});
  double sum = 0;
  bench.add("", ops::SumOfSquares{.sum = &sum, .x = g});
  add_rows(bench, memory);
  const View y = memory.random(DType::kBF16, {kRows / 4, kHidden});
  const View gate_up = memory.random(DType::kBF16, {kRows / 4, 2 * kHidden});
  const View dgate_up = memory.random(DType::kBF16, {kRows / 4, 2 * kHidden});
  bench.add("", ops::SwiGluForward{.y = y, .gate_up = gate_up});
  bench.add("", ops::SwiGluBackward{.dgate_up = dgate_up, .dy = y, .gate_up = gate_up});
  bench.measure(rounds);
  bench.print();
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::bench_main("bench_ops", argc, argv, lockstep::main_checked);
}
