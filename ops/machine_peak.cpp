#include "ops/machine_peak.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "ops/cpu/peak_kernel.h"

namespace lockstep::ops {
namespace {

// The best rate of `units` a thread over the repetitions, all threads starting together.
template <class Work>
double best_rate(CpuStream& stream, int repetitions, double units, const Work& work) {
  const int threads = stream.pool().threads();
  double best = 0;
  for (int r = 0; r < repetitions; ++r) {
    std::atomic<int> ready{0};
    std::vector<std::int64_t> begin(static_cast<std::size_t>(threads));
    std::vector<std::int64_t> end(begin.size());
    // An index waits until every thread has one, so that each thread runs exactly one.
    stream.pool().parallel_for(threads, [&](std::int64_t i, int) {
      ready.fetch_add(1);
      while (ready.load() < threads) std::this_thread::yield();
      begin[static_cast<std::size_t>(i)] = now_ns();
      work(i);
      end[static_cast<std::size_t>(i)] = now_ns();
    });
    const auto elapsed =
        *std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end());
    best = std::max(best, units * threads / (static_cast<double>(elapsed) * 1e-9));
  }
  return best;
}

}  // namespace

MachinePeak measure_peak(CpuStream& stream, int repetitions, MeasureRead read) {
  const PeakKernel& kernel =
      by_isa(stream.isa(), std::cref(portable::peak_kernel), std::cref(avx2::peak_kernel),
             std::cref(avx512::peak_kernel), std::cref(avx512_bf16::peak_kernel));
  // One or two milliseconds a run: short, so that some go undisturbed.
  constexpr std::int64_t kRounds = 500'000;
  const int runs = 4 * repetitions;
  volatile float sink = 0;
  MachinePeak peak;
  peak.bf16_flops =
      best_rate(stream, runs, kernel.bf16_flops_per_round * static_cast<double>(kRounds),
                [&](std::int64_t) { sink = kernel.bf16(kRounds); });
  peak.fp32_flops =
      best_rate(stream, runs, kernel.fp32_flops_per_round * static_cast<double>(kRounds),
                [&](std::int64_t) { sink = kernel.fp32(kRounds); });
  // Operands that are widened to fp32 first are bf16 products too.
  peak.bf16_flops = std::max(peak.bf16_flops, peak.fp32_flops);
  if (read == MeasureRead::kNo) return peak;
  const int threads = stream.pool().threads();
  constexpr std::int64_t kFloats = std::int64_t{64} << 20;  // 256 MiB a thread
  Buffer memory(threads * kFloats * 4, "bandwidth test");
  auto* data = static_cast<float*>(memory.data());
  stream.pool().parallel_for(threads, [&](std::int64_t i, int) {
    std::fill_n(data + i * kFloats, kFloats, 1.0F);  // not the shared page of zeros
  });
  peak.read_bytes_per_s =
      best_rate(stream, repetitions, static_cast<double>(kFloats) * 4,
                [&](std::int64_t i) { sink = kernel.read(data + i * kFloats, kFloats); });
  return peak;
}

}  // namespace lockstep::ops
