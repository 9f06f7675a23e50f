#include "ops/cpu/gemm.h"

#include <algorithm>
#include <numeric>

namespace lockstep::ops {
namespace {

bool widens(const GemmKernels& kernels, DType type) {
  return type == DType::kBF16 && kernels.a_bf16 == DType::kF32;
}

// Elements of k summed in registers before they are added to the sums so far.
std::int64_t block_of(const GemmKernels& kernels, DType type) {
  return type == DType::kBF16 && !widens(kernels, type) ? 1024 : 384;
}
// Elements of k, whole blocks, that a panel of B and the rows of A go through at once: as many as
// stay in the second-level cache meanwhile.
std::int64_t depth_of(const GemmKernels& kernels, DType type) {
  return type == DType::kBF16 && !widens(kernels, type) ? 1024 : 1152;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t unit) { return ceil_div(a, unit) * unit; }

const char* at(const void* p, std::int64_t elements, DType type) {
  return static_cast<const char*>(p) + elements * static_cast<std::int64_t>(size_of(type));
}

// The block of C that one task makes.
struct Blocks {
  std::int64_t rows;
  std::int64_t cols;
};

// Blocks whose operands fit the second-level cache, cut smaller until every thread has several, so
// that none waits long at the end. Where A is packed by every block that reads it, blocks are wide
// and few, one a thread if need be, and columns are cut last; elsewhere columns are cut once before
// the rows. Where no sums are kept between depths, width costs no cache, and short rows make room
// for more of them.
Blocks blocks_of(const GemmKernels& kernels, const Gemm& g, int threads) {
  constexpr std::int64_t kRows = 192;
  constexpr std::int64_t kCols = 768;
  const bool packs = g.a_layout == Gemm::Layout::kTransposed;
  Blocks b{kRows, packs ? 1056 : kCols};
  if (!packs && g.k <= depth_of(kernels, g.type)) {
    b = {std::clamp(kRows * kCols / g.k, kRows, 2 * kRows), g.n};
  }
  b.cols = std::min(b.cols, round_up(g.n, kernels.panel));
  b.rows = std::min(b.rows, round_up(g.m, kernels.rows));
  const auto count = [&] { return ceil_div(g.m, b.rows) * ceil_div(g.n, b.cols); };
  const std::int64_t wanted = threads == 1 ? 1 : std::int64_t{packs ? 1 : 6} * threads;
  while (!packs && count() < wanted && b.cols > kCols) b.cols = ceil_div(b.cols, 2);
  if (count() < wanted) b.rows = std::min(b.rows, kRows);
  if (!packs && count() < wanted) b.cols = std::min(b.cols, kCols / 2);
  while (count() < wanted && b.rows > 4 * kernels.rows) b.rows = ceil_div(b.rows, 2);
  while (count() < wanted && b.cols > kernels.panel) b.cols = ceil_div(b.cols, 2);
  const std::int64_t across = ceil_div(g.n, b.cols);
  // As many for every thread.
  const std::int64_t down =
      round_up(ceil_div(g.m, b.rows), threads / std::gcd(std::int64_t{threads}, across));
  b.rows = round_up(ceil_div(g.m, down), kernels.rows);
  b.cols = round_up(ceil_div(g.n, across), kernels.panel);
  return b;
}

// Words of 32 bits from one panel of A to the next: a cache line more than it holds, since panels
// are written side by side and would else share a set of the first-level cache.
std::int64_t panel_words(const GemmKernels& kernels, DType type, std::int64_t depth) {
  const std::int64_t words = packed_depth(type, depth);
  const bool pairs = type == DType::kBF16 && !widens(kernels, type);
  return kernels.rows * (pairs ? words / 2 : words) + 16;
}

struct Workspace {
  std::int64_t a_bytes;     // A of one block and one depth, packed or widened
  std::int64_t wide_bytes;  // a panel of B and one depth, widened, behind it
  std::int64_t bytes;       // with the sums so far of one block behind that
};

Workspace workspace_of(const GemmKernels& kernels, const Gemm& g, const Blocks& b) {
  const std::int64_t depth = std::min(round_up(g.k, 2), depth_of(kernels, g.type));
  const bool packs = g.a_layout == Gemm::Layout::kTransposed;
  Workspace w{};
  const std::int64_t rows = round_up(b.rows, kernels.rows);
  if (packs) {
    w.a_bytes = round_up(rows / kernels.rows * panel_words(kernels, g.type, depth) * 4, 64);
  } else if (widens(kernels, g.type)) {
    w.a_bytes = round_up(rows * depth * 4, 64);
  }
  if (widens(kernels, g.b_type)) w.wide_bytes = kernels.panel * depth * 4;
  w.bytes = w.a_bytes + w.wide_bytes;
  if (g.k > depth_of(kernels, g.type)) w.bytes += rows * round_up(b.cols, kernels.panel) * 4;
  return w;
}

struct Operand {
  const void* data;
  std::int64_t stride;
};

// A's rows [row, row + rows) and k [k0, k0 + depth) as the kernels want them.
Operand operand_a(const GemmKernels& kernels, const Gemm& g, std::int64_t row, std::int64_t rows,
                  std::int64_t k0, std::int64_t depth, void* memory) {
  const bool is_bf16 = g.type == DType::kBF16;
  if (g.a_layout == Gemm::Layout::kTransposed) {
    const void* from = at(g.a, k0 * g.a_stride + row, g.type);
    const std::int64_t panel = panel_words(kernels, g.type, depth);
    if (is_bf16) {
      kernels.pack_a_bf16(memory, panel, static_cast<const bf16*>(from), g.a_stride, depth, rows);
    } else {
      kernels.pack_a_f32(static_cast<float*>(memory), panel, static_cast<const float*>(from),
                         g.a_stride, depth, rows);
    }
    const std::int64_t stride = panel * (is_bf16 && !widens(kernels, g.type) ? 2 : 1);
    return {memory, stride};
  }
  const void* from = at(g.a, row * g.a_stride + k0, g.type);
  if (!widens(kernels, g.type)) return {from, g.a_stride};
  const std::int64_t stride = packed_depth(g.type, depth);
  kernels.widen_rows(static_cast<float*>(memory), stride, static_cast<const bf16*>(from),
                     g.a_stride, rows, depth);
  return {memory, stride};
}

void (*kernel_of(const GemmKernels& kernels, const Gemm& g))(const PanelProduct&) {
  const bool panels = g.a_layout == Gemm::Layout::kTransposed;
  if (g.b_type == DType::kF32) return panels ? kernels.f32_panels : kernels.f32_rows;
  return panels ? kernels.bf16_panels : kernels.bf16_rows;
}

void multiply_block(const GemmKernels& kernels, const Gemm& g, const Blocks& b, std::int64_t row,
                    std::int64_t col, void* workspace) {
  const Workspace w = workspace_of(kernels, g, b);
  char* behind_a = static_cast<char*>(workspace) + w.a_bytes;
  auto* partial = reinterpret_cast<float*>(behind_a + w.wide_bytes);
  const DType c_type = g.store == GemmStore::kBF16 ? DType::kBF16 : DType::kF32;
  const std::int64_t end = std::min(g.n, col + b.cols);
  const std::int64_t full_depth = depth_of(kernels, g.type);
  const std::int64_t b_depth = packed_depth(g.b_type, g.b_depth);
  const auto b_size = static_cast<std::int64_t>(size_of(g.b_type));
  const auto multiply = kernel_of(kernels, g);
  PanelProduct p;
  p.wide = reinterpret_cast<float*>(behind_a);
  p.rows = std::min(b.rows, g.m - row);
  p.block = block_of(kernels, g.type);
  p.partial_stride = round_up(b.cols, kernels.panel);
  p.c_stride = g.c_stride;
  p.store = g.store;
  for (std::int64_t k0 = 0; k0 < g.k; k0 += full_depth) {
    p.k = std::min(full_depth, g.k - k0);
    p.first = k0 == 0;
    p.last = k0 + p.k == g.k;
    const Operand a = operand_a(kernels, g, row, p.rows, k0, p.k, workspace);
    p.a = a.data;
    p.a_stride = a.stride;
    for (std::int64_t n = col; n < end; n += kernels.panel) {
      p.cols = std::min<std::int64_t>(kernels.panel, g.n - n);
      p.width = std::min<std::int64_t>(kernels.panel, round_up(g.b_cols - n, 16));
      p.b = at(g.b, n * b_depth + k0 * p.width, g.b_type);
      const bool more = n + kernels.panel < end;
      p.next = more ? at(g.b, (n + kernels.panel) * b_depth + k0 * p.width, g.b_type) : nullptr;
      p.next_bytes = more ? p.k * p.width * b_size : 0;
      p.partial = partial + (n - col);
      p.c = const_cast<char*>(at(g.c, row * g.c_stride + n, c_type));
      multiply(p);
    }
  }
}

}  // namespace

void gemm(CpuStream& stream, const Gemm& g, void* scratch) {
  const GemmKernels& kernels = gemm_kernels_of(stream.isa());
  const Blocks b = blocks_of(kernels, g, stream.pool().threads());
  const std::int64_t bytes = round_up(workspace_of(kernels, g, b).bytes, 64);
  const std::int64_t down = ceil_div(g.m, b.rows);
  // Neighbours in time share columns: B is the operand that lies further away.
  stream.pool().parallel_for(down * ceil_div(g.n, b.cols), [&](std::int64_t i, int thread) {
    multiply_block(kernels, g, b, i % down * b.rows, i / down * b.cols,
                   static_cast<char*>(scratch) + thread * bytes);
  });
}

std::int64_t gemm_scratch_bytes(Isa isa, int threads, const Gemm& g) {
  const GemmKernels& kernels = gemm_kernels_of(isa);
  const Blocks b = blocks_of(kernels, g, threads);
  return threads * round_up(workspace_of(kernels, g, b).bytes, 64);
}

void gemm_on_one_thread(const GemmKernels& kernels, const Gemm& g, void* workspace) {
  multiply_block(kernels, g, {g.m, g.n}, 0, 0, workspace);
}

std::int64_t gemm_workspace_bytes(const GemmKernels& kernels, const Gemm& g) {
  return round_up(workspace_of(kernels, g, {g.m, g.n}).bytes, 64);
}

DType columns_type(Isa isa, DType type) {
  return widens(gemm_kernels_of(isa), type) ? DType::kF32 : type;
}

void pack_columns(CpuStream& stream, void* out, DType type, const void* x, std::int64_t stride,
                  std::int64_t k, std::int64_t cols) {
  const GemmKernels& kernels = gemm_kernels_of(stream.isa());
  const DType packed = columns_type(stream.isa(), type);
  constexpr std::int64_t kRows = 32;  // even: pairs of k stay whole
  stream.pool().parallel_for(ceil_div(k, kRows), [&](std::int64_t i, int) {
    const std::int64_t k0 = i * kRows;
    const std::int64_t depth = std::min(kRows, k - k0);
    for (std::int64_t n = 0; n < cols; n += kernels.panel) {
      const std::int64_t some = std::min<std::int64_t>(kernels.panel, cols - n);
      const std::int64_t to = n * packed_depth(packed, k) + k0 * round_up(some, 16);
      const void* from = at(x, k0 * stride + n, type);
      if (packed == DType::kBF16) {
        kernels.pack_b_bf16(static_cast<bf16*>(out) + to, static_cast<const bf16*>(from), stride,
                            depth, some);
      } else if (type == DType::kBF16) {
        kernels.pack_b_widening(static_cast<float*>(out) + to, static_cast<const bf16*>(from),
                                stride, depth, some);
      } else {
        kernels.pack_b_f32(static_cast<float*>(out) + to, static_cast<const float*>(from), stride,
                           depth, some);
      }
    }
  });
}

}  // namespace lockstep::ops
