// Attention of the shapes that the presets use, forward and backward, q, k and v lying in one row
// as in the model. One JSON line a case: useful flops (pairs that the mask lets through) over the
// peak of this machine, measured in the same round; medians of interleaved rounds.
//
//   bench_attention [threads [isa [name]]]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "ops/attention.h"
#include "ops/machine_peak.h"
#include "ops/run.h"

namespace lockstep {
namespace {

struct Shape {
  const char* name;
  DType dtype;
  std::int64_t batches, length, heads, kv_heads, dim, window, first_query;
};
constexpr DType kF32 = DType::kF32;
constexpr DType kBF16 = DType::kBF16;
constexpr Shape kShapes[] = {
    {"190m_1024", kBF16, 1, 1024, 12, 12, 64, 0, 0},
    {"190m_2048", kBF16, 1, 2048, 12, 12, 64, 0, 0},
    {"190m_8192_window_4096", kBF16, 1, 8192, 12, 12, 64, 4096, 0},
    {"dim_128_1024", kBF16, 1, 1024, 6, 6, 128, 0, 0},
    {"dim_128_2048_window_512", kBF16, 1, 2048, 6, 6, 128, 512, 0},
    {"dim_128_grouped", kBF16, 1, 1024, 8, 2, 128, 0, 0},
    {"demo_window_128", kBF16, 8, 512, 4, 4, 64, 128, 0},
    {"demo_full", kBF16, 8, 512, 4, 4, 64, 0, 0},
    {"linear_512", kBF16, 1, 512, 12, 12, 64, 256, 0},
    {"linear_2048", kBF16, 1, 2048, 12, 12, 64, 256, 0},
    {"linear_8192", kBF16, 1, 8192, 12, 12, 64, 256, 0},
    {"linear_16384", kBF16, 1, 16384, 12, 12, 64, 256, 0},
    {"f32_190m_1024", kF32, 1, 1024, 12, 12, 64, 0, 0},
    {"f32_demo_window_128", kF32, 8, 512, 4, 4, 64, 128, 0},
    {"decode_1024", kBF16, 1, 1, 12, 12, 64, 0, 1023},
    {"decode_grouped_4096", kBF16, 1, 1, 16, 4, 128, 0, 4095},
};

struct Timed {
  std::vector<double> ms, share;

  template <class Op>
  void round(CpuStream& stream, const Op& op, double peak) {
    const int times = std::max(1, static_cast<int>(0.02 * peak / op.flops() / 4));
    const double begin = seconds();
    for (int i = 0; i < times; ++i) ops::run(stream, op);
    const double each = (seconds() - begin) / times;
    ms.push_back(each * 1e3);
    share.push_back(op.flops() / each / peak);
  }
};

void bench(CpuStream& stream, const Shape& s) {
  Memory memory;
  const std::int64_t keys = s.first_query + s.length;
  const std::int64_t width = (s.heads + 2 * s.kv_heads) * s.dim;
  const View qkv = memory.random(s.dtype, {s.batches, keys, width});
  const View dqkv = memory.random(s.dtype, {s.batches, keys, width});
  const auto part = [&](const View& all, std::int64_t first, std::int64_t heads) {
    return all.slice(2, first * s.dim, heads * s.dim).split_last(s.dim);
  };
  const View k = part(qkv, s.heads, s.kv_heads);
  const View v = part(qkv, s.heads + s.kv_heads, s.kv_heads);
  const View q = part(qkv, 0, s.heads).slice(1, s.first_query, s.length);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.dim)));
  const ops::AttentionForward forward{
      .out = memory.random(s.dtype, {s.batches, s.length, s.heads, s.dim}),
      .lse = memory.take(kF32, {s.batches, s.heads, s.length}),
      .q = q,
      .k = k,
      .v = v,
      .segments = View(),
      .first_query = s.first_query,
      .window = s.window,
      .scale = scale};
  const ops::AttentionBackward backward{
      .dq = part(dqkv, 0, s.heads),
      .dk = part(dqkv, s.heads, s.kv_heads),
      .dv = part(dqkv, s.heads + s.kv_heads, s.kv_heads),
      .dout = memory.random(s.dtype, {s.batches, s.length, s.heads, s.dim}),
      .out = forward.out,
      .lse = forward.lse,
      .q = q,
      .k = k,
      .v = v,
      .segments = View(),
      .window = s.window,
      .scale = scale};
  const bool is_training = s.first_query == 0;
  Timed ahead, back;
  for (int round = 0; round < 7; ++round) {
    const ops::MachinePeak peaks = ops::measure_peak(stream, 1, ops::MeasureRead::kNo);
    const double peak = s.dtype == kBF16 ? peaks.bf16_flops : peaks.fp32_flops;
    ahead.round(stream, forward, peak);
    if (is_training) back.round(stream, backward, peak);
  }
  std::printf(
      "{\"case\": \"%s\", \"threads\": %d, \"isa\": \"%s\", \"dtype\": \"%s\", "
      "\"scratch_mb\": %.1f, \"forward_ms\": %.3f",
      s.name, stream.pool().threads(), name_of(stream.isa()), name_of(s.dtype),
      static_cast<double>(stream.scratch_bytes()) / 1e6, median(ahead.ms));
  if (is_training) std::printf(", \"backward_ms\": %.3f", median(back.ms));
  std::printf(", \"forward_share_of_peak\": %.3f", median(ahead.share));
  if (is_training) std::printf(", \"backward_share_of_peak\": %.3f", median(back.share));
  std::printf("}\n");
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : ThreadPool::available_cpus();
  const Isa isa = argc > 2 ? isa_from_name(argv[2]) : default_isa();
  for (const Shape& shape : kShapes) {
    if (argc > 3 && std::string(shape.name).find(argv[3]) == std::string::npos) continue;
    CpuStream stream(threads, isa);
    bench(stream, shape);
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::bench_main("bench_attention", argc, argv, lockstep::run);
}
