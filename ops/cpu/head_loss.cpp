#include "ops/head_loss.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/head_loss_kernel.h"
#include "ops/elementwise.h"

namespace lockstep::ops {
namespace {

// A tile of logits: kTileRows x kTileCols in fp32 stays in the second-level cache between the
// product that makes it and the passes over it. Columns are whole panels on every instruction set.
constexpr std::int64_t kTileRows = 64;
constexpr std::int64_t kTileCols = 768;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t unit) { return ceil_div(a, unit) * unit; }

const HeadLossKernels& kernels_of(Isa isa) {
  return *by_isa(isa, &portable::head_loss_kernels, &avx2::head_loss_kernels,
                 &avx512::head_loss_kernels, &avx512::head_loss_kernels);
}

// Hands out parts of the stream's scratch memory; with no memory it only adds up.
class Scratch {
 public:
  explicit Scratch(void* memory) : memory_(static_cast<char*>(memory)) {}
  template <class T>
  T* take(std::int64_t count) {
    char* here = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(count * static_cast<std::int64_t>(sizeof(T)), 64);
    return reinterpret_cast<T*>(here);
  }
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  char* memory_;
  std::int64_t used_ = 0;
};

// What the pass over the logits leaves behind for `rows` rows.
struct Passed {
  float* max = nullptr;            // (rows, tiles)
  float* sum = nullptr;            // (rows, tiles)
  std::int32_t* argmax = nullptr;  // (rows, tiles) or null
  float* target_logit = nullptr;   // (rows)
  char* e = nullptr;               // (rows, e_stride) exponentials, compact if bf16, or null
  std::int64_t e_stride = 0;       // elements
};

// The head's operands, from a row on.
struct Head {
  Isa isa;
  const GemmKernels& gemm;
  const HeadLossKernels& loss;
  const PackedWeight& w;
  const char* h;
  std::int64_t h_stride;
  const std::int32_t* targets;
  std::int64_t rows;
  std::int64_t vocab;

  [[nodiscard]] std::int64_t tiles() const { return ceil_div(vocab, kTileCols); }
  [[nodiscard]] std::int64_t element() const {
    return static_cast<std::int64_t>(size_of(w.dtype()));
  }
  // Logits of `rows` rows from `row` and of the tile's columns.
  [[nodiscard]] Gemm logits(std::int64_t row, std::int64_t tile, float* out) const {
    Gemm g;
    g.m = std::min(kTileRows, rows - row);
    g.n = std::min(kTileCols, vocab - tile * kTileCols);
    g.k = w.in();
    g.type = w.dtype();
    g.b_type = w.dtype();
    g.a = h + row * h_stride * element();
    g.a_stride = h_stride;
    g.b = static_cast<const char*>(w.forward().raw()) +
          tile * kTileCols * packed_depth(g.type, g.k) * element();
    g.b_depth = g.k;
    g.b_cols = w.out() - tile * kTileCols;
    g.c = out;
    g.c_stride = kTileCols;
    return g;
  }
};

Passed take_passed(Scratch& scratch, const Head& head, bool argmax, bool keep_e) {
  const std::int64_t per_tile = head.rows * head.tiles();
  Passed p;
  p.max = scratch.take<float>(per_tile);
  p.sum = scratch.take<float>(per_tile);
  if (argmax) p.argmax = scratch.take<std::int32_t>(per_tile);
  p.target_logit = scratch.take<float>(head.rows);
  // One cache line more than needed keeps rows off multiples of 4 KiB, where the eight rows that a
  // kernel reads together would share one set of the first-level cache.
  p.e_stride = round_up(head.vocab, 32) + 32;
  if (keep_e) p.e = scratch.take<char>(head.rows * p.e_stride * head.element());
  return p;
}

// Each thread's tile of logits and product workspace.
struct TileMemory {
  std::int64_t logits_bytes;
  std::int64_t bytes;
};

TileMemory tile_memory(const Head& head) {
  const std::int64_t logits = kTileRows * kTileCols * 4;
  return {logits, logits + gemm_workspace_bytes(head.gemm, head.logits(0, 0, nullptr))};
}

void pass_row(const Head& head, const Passed& p, std::int64_t row, std::int64_t tile,
              const float* logits) {
  const std::int64_t begin = tile * kTileCols;
  const std::int64_t n = std::min(kTileCols, head.vocab - begin);
  const std::int64_t at = row * head.tiles() + tile;
  RowStatistics s{};
  if (p.e == nullptr) {
    s = head.loss.statistics(logits, n);
  } else {
    char* e = p.e + (row * p.e_stride + begin) * head.element();
    s = head.w.dtype() == DType::kBF16
            ? head.loss.compact_exponentials(reinterpret_cast<std::uint16_t*>(e), logits, n)
            : head.loss.exponentials(reinterpret_cast<float*>(e), logits, n);
  }
  p.max[at] = s.max;
  p.sum[at] = s.sum;
  if (p.argmax != nullptr) {
    const std::int64_t first = head.loss.first_of(logits, n, s.max);
    p.argmax[at] = static_cast<std::int32_t>(begin + std::min(first, n - 1));
  }
  const std::int64_t target = head.targets[row] - begin;
  if (target >= 0 && target < n) p.target_logit[row] = logits[target];
}

// Logits by tiles; what remains of them is in p.
void pass_over_logits(CpuStream& stream, const Head& head, const Passed& p, char* memory) {
  const TileMemory m = tile_memory(head);
  const std::int64_t blocks = ceil_div(head.rows, kTileRows);
  stream.pool().parallel_for(blocks * head.tiles(), [&](std::int64_t i, int thread) {
    char* mine = memory + thread * m.bytes;
    auto* logits = reinterpret_cast<float*>(mine);
    const std::int64_t row = i % blocks * kTileRows;
    const std::int64_t tile = i / blocks;
    const Gemm g = head.logits(row, tile, logits);
    gemm_on_one_thread(head.gemm, g, mine + m.logits_bytes);
    for (std::int64_t r = 0; r < g.m; ++r) pass_row(head, p, row + r, tile, logits + r * kTileCols);
  });
}

// log sum exp over the tiles, which are added in order. fp64: the sum's terms are many and the
// logarithm's error would be the loss's.
double log_sum_exp(const float* max, const float* sum, std::int64_t tiles) {
  const double top = *std::max_element(max, max + tiles);
  double total = 0;
  for (std::int64_t t = 0; t < tiles; ++t) total += sum[t] * std::exp(max[t] - top);
  return top + std::log(total);
}

float cross_entropy(double lse, std::int32_t target, float target_logit) {
  return target < 0 ? 0.0F : static_cast<float>(lse - target_logit);
}

template <class Each>
void each_row(CpuStream& stream, std::int64_t rows, const Each& each) {
  constexpr std::int64_t kRows = 16;
  stream.pool().parallel_for(ceil_div(rows, kRows), [&](std::int64_t i, int) {
    for (std::int64_t n = i * kRows; n < std::min(rows, (i + 1) * kRows); ++n) each(n);
  });
}

// max[n, t] becomes the factor that makes exponentials gradients; see HeadLossBackward.
void finish_rows(CpuStream& stream, const HeadLossBackward& op, const Head& head, const Passed& p,
                 std::int64_t first) {
  const std::int64_t tiles = head.tiles();
  each_row(stream, head.rows, [&](std::int64_t n) {
    float* max = p.max + n * tiles;
    const double lse = log_sum_exp(max, p.sum + n * tiles, tiles);
    op.token_lse.data<float>()[first + n] = static_cast<float>(lse);
    op.token_ce.data<float>()[first + n] = cross_entropy(lse, head.targets[n], p.target_logit[n]);
    const double scale =
        static_cast<double>(op.scale) * (1 + 2 * static_cast<double>(op.z_coefficient) * lse);
    for (std::int64_t t = 0; t < tiles; ++t) {
      max[t] = static_cast<float>(scale * std::exp(max[t] - lse));
    }
  });
}

void make_gradients(CpuStream& stream, const Head& head, const Passed& p, float scale) {
  const std::int64_t tiles = head.tiles();
  each_row(stream, head.rows, [&](std::int64_t n) {
    char* row = p.e + n * p.e_stride * head.element();
    const std::int64_t target = head.targets[n];
    if (target < 0) {
      std::memset(row, 0, static_cast<std::size_t>(head.vocab * head.element()));
      return;
    }
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::int64_t begin = t * kTileCols;
      const std::int64_t count = std::min(kTileCols, head.vocab - begin);
      const bool here = target >= begin && target < begin + count;
      char* e = row + begin * head.element();
      const float factor = p.max[n * tiles + t];
      const std::int64_t at = here ? target - begin : -1;
      if (head.w.dtype() == DType::kBF16) {
        head.loss.compact_gradient(e, count, factor, at, scale);
      } else {
        head.loss.gradient(reinterpret_cast<float*>(e), count, factor, at, scale);
      }
    }
  });
}

Gemm input_gradient(const Head& head, const Passed& p, float* dh) {
  Gemm g;
  g.m = head.rows;
  g.n = head.w.in();
  g.k = head.vocab;
  g.type = head.w.dtype();
  g.a = p.e;
  g.a_stride = p.e_stride;
  g.b_type = g.type;
  g.b = head.w.backward().raw();
  g.b_depth = head.w.out();
  g.b_cols = g.n;
  g.c = dh;
  g.c_stride = head.w.in();
  return g;
}

Gemm weight_gradient(const Head& head, const Passed& p, const void* h_panels, float* dw,
                     bool first) {
  Gemm g;
  g.m = head.vocab;
  g.n = head.w.in();
  g.k = head.rows;
  g.type = head.w.dtype();
  g.a = p.e;
  g.a_stride = p.e_stride;
  g.a_layout = Gemm::Layout::kTransposed;
  g.b_type = columns_type(head.isa, g.type);
  g.b = h_panels;
  g.b_depth = head.rows;
  g.b_cols = g.n;
  g.c = dw;
  g.c_stride = head.w.in();
  g.store = first ? GemmStore::kF32 : GemmStore::kAddF32;
  return g;
}

// Rows whose exponentials are kept at a time: equal parts of whole tiles.
std::int64_t chunk_rows(const HeadLossBackward& op) {
  const std::int64_t rows = op.h.dim(0);
  const std::int64_t row_bytes = op.vocab * static_cast<std::int64_t>(size_of(op.w->dtype()));
  const std::int64_t most = std::max(kTileRows, op.kept_bytes / row_bytes / kTileRows * kTileRows);
  return std::min(rows, round_up(ceil_div(rows, ceil_div(rows, most)), kTileRows));
}

Head head_of(Isa isa, const PackedWeight& w, const View& h, const View& targets, std::int64_t vocab,
             std::int64_t first, std::int64_t rows) {
  LOCKSTEP_CHECK(w.isa() == isa, "weight packed for ", name_of(w.isa()), ", stream of ",
                 name_of(isa));
  const auto element = static_cast<std::int64_t>(size_of(w.dtype()));
  return {isa,
          gemm_kernels_of(isa),
          kernels_of(isa),
          w,
          static_cast<const char*>(h.raw()) + first * h.stride(0) * element,
          h.stride(0),
          targets.data<std::int32_t>() + first,
          rows,
          vocab};
}

struct ChunkMemory {
  Passed passed;
  // The chunks' sum where it is to be added to something, else null. Taken first, so that it stays
  // where it is when the last chunk has fewer rows.
  float* dw;
  char* h_panels;
  char* workspace;
  std::int64_t bytes;
};

ChunkMemory chunk_memory(const HeadLossBackward& op, int threads, const Head& head, void* memory) {
  const Isa isa = head.isa;
  Scratch scratch(memory);
  ChunkMemory m{};
  if (op.accumulate == Accumulate::kAdd && chunk_rows(op) < op.h.dim(0)) {
    m.dw = scratch.take<float>(op.vocab * op.w->in());
  }
  m.passed = take_passed(scratch, head, false, true);
  const DType columns = columns_type(isa, head.w.dtype());
  m.h_panels = scratch.take<char>(packed_size(columns, head.rows, head.w.in()) *
                                  static_cast<std::int64_t>(size_of(columns)));
  const std::int64_t workspace = std::max(
      {threads * tile_memory(head).bytes,
       gemm_scratch_bytes(isa, threads, input_gradient(head, m.passed, nullptr)),
       gemm_scratch_bytes(isa, threads, weight_gradient(head, m.passed, nullptr, nullptr, true))});
  m.workspace = scratch.take<char>(workspace);
  m.bytes = scratch.used();
  return m;
}

}  // namespace

void enqueue(CpuStream& stream, const HeadLossForward& op) {
  const Head head = head_of(stream.isa(), *op.w, op.h, op.targets, op.vocab, 0, op.h.dim(0));
  const bool argmax = !op.token_argmax.empty();
  const auto layout = [&](Scratch& scratch, char*& tiles) {
    const Passed p = take_passed(scratch, head, argmax, false);
    tiles = scratch.take<char>(stream.pool().threads() * tile_memory(head).bytes);
    return p;
  };
  char* tile_space = nullptr;
  Scratch measure(nullptr);
  static_cast<void>(layout(measure, tile_space));
  Scratch scratch(stream.scratch(measure.used()));
  const Passed p = layout(scratch, tile_space);
  pass_over_logits(stream, head, p, tile_space);
  const std::int64_t tiles = head.tiles();
  each_row(stream, head.rows, [&](std::int64_t n) {
    const float* max = p.max + n * tiles;
    const double lse = log_sum_exp(max, p.sum + n * tiles, tiles);
    op.token_lse.data<float>()[n] = static_cast<float>(lse);
    op.token_ce.data<float>()[n] = cross_entropy(lse, head.targets[n], p.target_logit[n]);
    if (argmax) {
      const auto best = std::max_element(max, max + tiles) - max;
      op.token_argmax.data<std::int32_t>()[n] = p.argmax[n * tiles + best];
    }
  });
}

std::int64_t scratch_bytes(const HeadLossBackward& op, Isa isa, int threads) {
  const Head head = head_of(isa, *op.w, op.h, op.targets, op.vocab, 0, chunk_rows(op));
  return chunk_memory(op, threads, head, nullptr).bytes;
}

void enqueue(CpuStream& stream, const HeadLossBackward& op) {
  const std::int64_t rows = op.h.dim(0);
  const std::int64_t in = op.w->in();
  const std::int64_t chunk = chunk_rows(op);
  const int threads = stream.pool().threads();
  const bool adds = op.accumulate == Accumulate::kAdd;
  auto* dw = op.dw.data<float>();
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const Head head = head_of(stream.isa(), *op.w, op.h, op.targets, op.vocab, first,
                              std::min(chunk, rows - first));
    const std::int64_t bytes = chunk_memory(op, threads, head, nullptr).bytes;
    const ChunkMemory m = chunk_memory(op, threads, head, stream.scratch(bytes));
    pass_over_logits(stream, head, m.passed, m.workspace);
    finish_rows(stream, op, head, m.passed, first);
    make_gradients(stream, head, m.passed, op.scale);
    gemm(stream, input_gradient(head, m.passed, op.dh.data<float>() + first * in), m.workspace);
    pack_columns(stream, m.h_panels, op.w->dtype(), head.h, head.h_stride, head.rows, in);
    const bool alone = first == 0 && (!adds || m.dw != nullptr);
    gemm(stream, weight_gradient(head, m.passed, m.h_panels, m.dw == nullptr ? dw : m.dw, alone),
         m.workspace);
    if (m.dw != nullptr && first + chunk >= rows) {
      const View sum = op.dw.slice(0, 0, op.vocab);
      enqueue(stream, Add{.y = sum, .a = sum, .b = View(m.dw, DType::kF32, {op.vocab, in})});
    }
  }
  if (!adds) std::fill(dw + op.vocab * in, dw + op.w->out() * in, 0.0F);
}

}  // namespace lockstep::ops
