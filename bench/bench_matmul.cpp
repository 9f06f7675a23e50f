// Products of the shapes that the presets use, against the peak of this machine measured beside
// them and against oneDNN with weights in its blocked layout. One JSON line a case; shares are
// medians of interleaved rounds, each round's time over the same round's peak.
//
//   bench_matmul [threads [dtype [name...]]]     dtype: bf16, f32 or all
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "ops/head_loss.h"
#include "ops/machine_peak.h"
#include "ops/matmul.h"
#include "ops/run.h"

namespace lockstep {
namespace {

struct Shape {
  const char* name;
  std::int64_t rows, out, in;
};
constexpr Shape kShapes[] = {{"190m_qkv", 1024, 2304, 768},     {"190m_o", 1024, 768, 768},
                             {"190m_gate_up", 1024, 6144, 768}, {"190m_down", 1024, 768, 3072},
                             {"demo_qkv", 2048, 768, 256},      {"demo_o", 2048, 256, 256},
                             {"demo_gate_up", 2048, 2048, 256}, {"demo_down", 2048, 256, 1024},
                             {"190m_head", 1024, 100352, 768},  {"demo_head", 2048, 8192, 256}};

// Rounds of: peak, every candidate, with enough repetitions that a round takes some milliseconds.
struct Candidate {
  const char* form;
  double flops;
  std::function<void()> once;
  std::vector<double> rates;
  std::vector<double> shares;
};

void measure(CpuStream& stream, DType dtype, const Shape& shape,
             std::vector<Candidate>& candidates) {
  for (auto& c : candidates) c.once();
  for (int round = 0; round < 7; ++round) {
    for (auto& c : candidates) {
      const ops::MachinePeak before = ops::measure_peak(stream, 1, ops::MeasureRead::kNo);
      const auto repetitions = static_cast<int>(std::max(1.0, 4e9 / c.flops));
      const double begin = seconds();
      for (int i = 0; i < repetitions; ++i) c.once();
      const double rate = c.flops * repetitions / (seconds() - begin);
      const ops::MachinePeak after = ops::measure_peak(stream, 1, ops::MeasureRead::kNo);
      const double peak = dtype == DType::kBF16 ? std::max(before.bf16_flops, after.bf16_flops)
                                                : std::max(before.fp32_flops, after.fp32_flops);
      c.rates.push_back(rate);
      c.shares.push_back(rate / peak);
    }
  }
  for (const auto& c : candidates) {
    std::printf(
        "{\"case\": \"%s\", \"form\": \"%s\", \"dtype\": \"%s\", \"isa\": \"%s\", \"threads\": %d, "
        "\"rows\": %lld, \"out\": %lld, \"in\": %lld, \"gflops\": %.1f, \"best_gflops\": %.1f, "
        "\"share_of_peak\": %.3f, \"best_share\": %.3f}\n",
        shape.name, c.form, name_of(dtype), name_of(stream.isa()), stream.pool().threads(),
        static_cast<long long>(shape.rows), static_cast<long long>(shape.out),
        static_cast<long long>(shape.in), median(c.rates) / 1e9,
        *std::max_element(c.rates.begin(), c.rates.end()) / 1e9, median(c.shares),
        *std::max_element(c.shares.begin(), c.shares.end()));
  }
  std::fflush(stdout);
}

// oneDNN's forward product, weights in the layout it chooses.
class OneDnn {
 public:
  OneDnn(DType dtype, const Shape& s, const View& x, const View& y, int threads)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    omp_set_num_threads(threads);
    using Tag = dnnl::memory::format_tag;
    const auto type =
        dtype == DType::kBF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
    const dnnl::memory::desc a({s.rows, s.in}, type, Tag::ab);
    const dnnl::memory::desc b({s.in, s.out}, type, Tag::any);
    const dnnl::memory::desc c({s.rows, s.out}, type, Tag::ab);
    const dnnl::matmul::primitive_desc choice(dnnl::matmul::desc(a, b, c), engine_);
    product_ = dnnl::matmul(choice);
    arguments_ = {{DNNL_ARG_SRC, dnnl::memory(a, engine_, x.raw())},
                  {DNNL_ARG_WEIGHTS, dnnl::memory(choice.weights_desc(), engine_)},
                  {DNNL_ARG_DST, dnnl::memory(c, engine_, y.raw())}};
    dnnl::memory& weights = arguments_.at(DNNL_ARG_WEIGHTS);
    std::memset(weights.get_data_handle(), 0, weights.get_desc().get_size());
  }
  void run() {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul product_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

ops::PackedWeight packed(CpuStream& stream, Memory& memory, Buffer& space, DType dtype,
                         const Shape& s) {
  const auto make = [&](Arena& arena) {
    return ops::PackedWeight(s.out, s.in, dtype, stream.isa(),
                             ops::PackedWeight::Use::kForwardAndBackward, arena);
  };
  Arena measured;
  static_cast<void>(make(measured));
  space = Buffer(measured.used(), "bench");
  Arena arena(space);
  ops::PackedWeight w = make(arena);
  ops::run(stream, ops::PackWeight{&w, memory.random(DType::kF32, {s.out, s.in}, 0.05F)});
  return w;
}

void bench_linear(CpuStream& stream, DType dtype, const Shape& s) {
  Memory memory;
  Buffer space;
  const ops::PackedWeight w = packed(stream, memory, space, dtype, s);
  const View x = memory.random(dtype, {s.rows, s.in}, 1);
  const View dy = memory.random(dtype, {s.rows, s.out}, 1);
  const View y = memory.take(dtype, {s.rows, s.out});
  const View dx = memory.take(dtype, {s.rows, s.in});
  const View dw = memory.take(DType::kF32, {s.out, s.in});
  OneDnn reference(dtype, s, x, y, stream.pool().threads());
  const ops::MatmulForward forward{y, x, &w};
  const ops::MatmulBackwardInput input{dx, dy, &w};
  const ops::MatmulBackwardWeight weight{dw, dy, x};
  std::vector<Candidate> candidates;
  candidates.push_back({"forward", forward.flops(), [&] { ops::run(stream, forward); }, {}, {}});
  candidates.push_back({"input", input.flops(), [&] { ops::run(stream, input); }, {}, {}});
  candidates.push_back({"weight", weight.flops(), [&] { ops::run(stream, weight); }, {}, {}});
  candidates.push_back({"forward_onednn", forward.flops(), [&] { reference.run(); }, {}, {}});
  measure(stream, dtype, s, candidates);
}

void bench_head(CpuStream& stream, DType dtype, const Shape& s) {
  Memory memory;
  Buffer space;
  const ops::PackedWeight w = packed(stream, memory, space, dtype, s);
  const View h = memory.random(dtype, {s.rows, s.in}, 1);
  const View targets = memory.take(DType::kI32, {s.rows});
  for (std::int64_t n = 0; n < s.rows; ++n) {
    targets.data<std::int32_t>()[n] = static_cast<std::int32_t>(n * 97 % s.out);
  }
  const View ce = memory.take(DType::kF32, {s.rows});
  const View lse = memory.take(DType::kF32, {s.rows});
  const View dh = memory.take(DType::kF32, {s.rows, s.in});
  const View dw = memory.take(DType::kF32, {s.out, s.in});
  const ops::HeadLossForward forward{ce, lse, {}, h, &w, targets, s.out};
  const ops::HeadLossBackward both{.token_ce = ce,
                                   .token_lse = lse,
                                   .dh = dh,
                                   .dw = dw,
                                   .h = h,
                                   .w = &w,
                                   .targets = targets,
                                   .vocab = s.out,
                                   .z_coefficient = 1e-5F,
                                   .scale = 1e-3F};
  std::vector<Candidate> candidates;
  candidates.push_back(
      {"head_forward", forward.flops(), [&] { ops::run(stream, forward); }, {}, {}});
  candidates.push_back({"head_loss", both.flops(), [&] { ops::run(stream, both); }, {}, {}});
  measure(stream, dtype, s, candidates);
}

bool wanted(const char* name, int argc, char** argv) {
  if (argc <= 3) return true;
  return std::any_of(argv + 3, argv + argc,
                     [&](const char* text) { return std::strstr(name, text) != nullptr; });
}

int bench(int argc, char** argv) {
  CpuStream stream(argc > 1 ? std::atoi(argv[1]) : ThreadPool::available_cpus());
  const std::string only = argc > 2 ? argv[2] : "all";
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    if (only != "all" && only != name_of(dtype)) continue;
    for (const Shape& s : kShapes) {
      if (!wanted(s.name, argc, argv)) continue;
      std::strstr(s.name, "head") != nullptr ? bench_head(stream, dtype, s)
                                             : bench_linear(stream, dtype, s);
    }
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::bench_main("bench_matmul", argc, argv, lockstep::bench);
}
