// Cuts attention into tasks for the thread pool and lays out their scratch memory. What is cut how
// is a function of the shapes alone.

#include "ops/attention.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/error.h"
#include "ops/cpu/attention_kernels.h"

#define LOCKSTEP_BY_ISA(isa, kernels) \
  (*by_isa(isa, &portable::kernels, &avx2::kernels, &avx512::kernels, &avx512_bf16::kernels))

namespace lockstep::ops {
namespace {

// Backward tasks to have in flight at once: enough to keep many cores busy, few enough that their
// partial dq stay small.
constexpr std::int64_t kTasksInFlight = 48;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int32_t narrow(std::int64_t n) {
  LOCKSTEP_CHECK(n >= 0 && n <= std::numeric_limits<std::int32_t>::max(), n);
  return static_cast<std::int32_t>(n);
}

// Parts of one piece of scratch, each aligned to 64 bytes: add all, then take memory, then place.
class Parts {
 public:
  std::int64_t add(std::int64_t bytes) {
    const std::int64_t at = bytes_;
    bytes_ += ceil_div(bytes, 64) * 64;
    return at;
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

AttentionTensor tensor_of(const View& view) {
  return {view.raw(), view.stride(0), view.stride(1), view.stride(2)};
}

AttentionProblem problem_of(const View& q, const View& k, const View& v, const View& out,
                            const View& lse, const View& segments) {
  AttentionProblem p{};
  p.q = tensor_of(q);
  p.k = tensor_of(k);
  p.v = tensor_of(v);
  p.out = tensor_of(out);
  p.lse = lse.data<float>();
  if (!segments.empty()) {
    p.segments = segments.data<std::int32_t>();
    p.segments_batch = segments.stride(0);
  }
  p.batches = narrow(q.dim(0));
  p.queries = narrow(q.dim(1));
  p.heads = narrow(q.dim(2));
  p.kv_heads = narrow(k.dim(2));
  p.dim = narrow(q.dim(3));
  return p;
}

std::int32_t window_of(std::int64_t window) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int32_t>::max();
  return narrow(window == 0 ? kNone : std::min(window, kNone));
}

std::int64_t blocks_of(const AttentionProblem& p) { return ceil_div(p.keys, kAttentionBlock); }

std::int64_t segment_bytes(const AttentionProblem& p) {
  if (p.segments == nullptr) return 0;
  return 2 * p.batches * blocks_of(p) * static_cast<std::int64_t>(sizeof(std::int32_t));
}

// The smallest and largest segment of each block, so that a tile can pass over blocks that hold
// none of its own, whatever their order.
void summarise_segments(AttentionProblem& p, void* memory) {
  if (p.segments == nullptr) return;
  auto* smallest = static_cast<std::int32_t*>(memory);
  std::int32_t* largest = smallest + p.batches * blocks_of(p);
  p.block_min = smallest;
  p.block_max = largest;
  for (std::int64_t b = 0; b < p.batches; ++b) {
    const std::int32_t* row = p.segments + b * p.segments_batch;
    for (std::int64_t begin = 0; begin < p.keys; begin += kAttentionBlock) {
      const std::int64_t end = std::min<std::int64_t>(begin + kAttentionBlock, p.keys);
      const auto [low, high] = std::minmax_element(row + begin, row + end);
      *smallest++ = *low;
      *largest++ = *high;
    }
  }
}

// Vectors of 16 queries in a tile. Two keep the multiply-adds busier, one computes less where the
// tile's width is a large part of the window's (measured: equal at a window of 256).
int vectors_for(std::int64_t queries, std::int32_t window) {
  return queries <= 16 || window <= 256 ? 1 : 2;
}

void decode(CpuStream& stream, AttentionProblem& p, const AttentionDecodeKernels& kernels) {
  Parts parts;
  const std::int64_t segments_at = parts.add(segment_bytes(p));
  const std::int64_t thread_bytes = ceil_div(kernels.scratch_bytes(p), 64) * 64;
  const std::int64_t threads_at = parts.add(thread_bytes * stream.pool().threads());
  auto* scratch = static_cast<char*>(stream.scratch(parts.bytes()));
  summarise_segments(p, scratch + segments_at);
  stream.pool().parallel_for(std::int64_t{p.batches} * p.kv_heads, [&](std::int64_t pair,
                                                                       int thread) {
    kernels.pair(p, static_cast<std::int32_t>(pair), scratch + threads_at + thread * thread_bytes);
  });
}

void forward(CpuStream& stream, AttentionProblem& p, const AttentionForwardKernels& kernels) {
  const std::int64_t share = p.heads / p.kv_heads;
  AttentionForwardWork work{};
  // Few queries: the heads that share keys share a tile, and keys are read but once.
  work.grouped = share * p.queries <= kAttentionMaxLanes;
  const std::int64_t rows = work.grouped ? share * p.queries : p.queries;
  work.vectors = work.grouped ? static_cast<int>(ceil_div(rows, 16)) : vectors_for(rows, p.window);
  const std::int64_t tiles = ceil_div(rows, std::int64_t{16} * work.vectors);
  const std::int64_t pairs = std::int64_t{p.batches} * p.kv_heads;
  const std::int64_t heads = work.grouped ? pairs : std::int64_t{p.batches} * p.heads;
  // Packing ahead pays once a block has several readers.
  const bool pack_ahead = tiles * heads > pairs;

  Parts parts;
  const std::int64_t segments_at = parts.add(segment_bytes(p));
  const std::int64_t packed_at =
      parts.add(pack_ahead ? pairs * blocks_of(p) * kernels.packed_block_bytes(p) : 0);
  const std::int64_t thread_bytes = ceil_div(kernels.scratch_bytes(p), 64) * 64;
  const std::int64_t threads_at = parts.add(thread_bytes * stream.pool().threads());
  auto* scratch = static_cast<char*>(stream.scratch(parts.bytes()));

  summarise_segments(p, scratch + segments_at);
  if (pack_ahead) {
    work.packed = scratch + packed_at;
    // Keys that no query sees are never read.
    const std::int64_t first =
        std::max<std::int64_t>(0, std::int64_t{p.first_query} - p.window + 1) / kAttentionBlock;
    const std::int64_t count = blocks_of(p) - first;
    stream.pool().parallel_for(pairs * count, [&](std::int64_t i, int) {
      kernels.pack_block(p, work, static_cast<std::int32_t>(i / count),
                         static_cast<std::int32_t>(first + i % count));
    });
  }
  // The last tiles of a head see the most keys: they go first.
  stream.pool().parallel_for(heads * tiles, [&](std::int64_t i, int thread) {
    kernels.tile(p, work, static_cast<std::int32_t>(i / tiles),
                 static_cast<std::int32_t>(tiles - 1 - i % tiles),
                 scratch + threads_at + thread * thread_bytes);
  });
}

std::int64_t chunks_of(const AttentionProblem& p) { return ceil_div(p.keys, kAttentionChunk); }

// Fills chunks + 1 entries; returns the tiles of a head, over all chunks.
std::int64_t cut_chunks(const AttentionProblem& p, std::int64_t lanes, AttentionChunk* chunk) {
  std::int64_t offset = 0;
  for (std::int64_t c = 0; c < chunks_of(p); ++c) {
    const std::int64_t first = c * kAttentionChunk;
    const std::int64_t last =
        std::min<std::int64_t>(first + kAttentionChunk - 1 + p.window - 1, p.queries - 1);
    const std::int64_t begin = first / lanes;
    const std::int64_t end = last / lanes + 1;
    if (chunk != nullptr) chunk[c] = {narrow(begin), narrow(end), offset};
    offset += end - begin;
  }
  if (chunk != nullptr) chunk[chunks_of(p)] = {0, 0, offset};
  return offset;
}

AttentionProblem problem_of(const AttentionBackward& op) {
  AttentionProblem p = problem_of(op.q, op.k, op.v, op.out, op.lse, op.segments);
  p.dout = tensor_of(op.dout);
  p.dq = tensor_of(op.dq);
  p.dk = tensor_of(op.dk);
  p.dv = tensor_of(op.dv);
  p.keys = p.queries;
  p.window = window_of(op.window);
  p.scale = op.scale;
  return p;
}

const AttentionBackwardKernels& kernels_of(const AttentionBackward& op, Isa isa) {
  return op.q.dtype() == DType::kBF16 ? LOCKSTEP_BY_ISA(isa, attention_backward_bf16)
                                      : LOCKSTEP_BY_ISA(isa, attention_backward_f32);
}

// How the backward pass is cut, and where the parts of its scratch memory begin.
struct BackwardLayout {
  int vectors;
  std::int64_t pairs_at_once;
  std::int64_t segments, chunks, dq, threads;
  std::int64_t thread_bytes;
  std::int64_t bytes;
};

BackwardLayout backward_layout(const AttentionProblem& p, const AttentionBackwardKernels& kernels,
                               int threads) {
  BackwardLayout at{};
  at.vectors = vectors_for(p.queries, p.window);
  const std::int64_t lanes = std::int64_t{16} * at.vectors;
  const std::int64_t chunks = chunks_of(p);
  const std::int64_t pairs = std::int64_t{p.batches} * p.kv_heads;
  at.pairs_at_once = std::min(pairs, ceil_div(kTasksInFlight, chunks));
  const std::int64_t dq_values = cut_chunks(p, lanes, nullptr) * lanes * ceil_div(p.dim, 16) * 16;
  Parts parts;
  at.segments = parts.add(segment_bytes(p));
  at.chunks = parts.add((chunks + 1) * static_cast<std::int64_t>(sizeof(AttentionChunk)));
  at.dq = parts.add(at.pairs_at_once * (p.heads / p.kv_heads) * dq_values *
                    static_cast<std::int64_t>(sizeof(float)));
  at.thread_bytes = ceil_div(kernels.scratch_bytes(p, at.vectors), 64) * 64;
  at.threads = parts.add(at.thread_bytes * threads);
  at.bytes = parts.bytes();
  return at;
}

}  // namespace

void enqueue(CpuStream& stream, const AttentionForward& op) {
  AttentionProblem p = problem_of(op.q, op.k, op.v, op.out, op.lse, op.segments);
  p.first_query = narrow(op.first_query);
  p.keys = narrow(op.first_query + op.q.dim(1));
  p.window = window_of(op.window);
  p.scale = op.scale;
  const bool is_bf16 = op.q.dtype() == DType::kBF16;
  const Isa isa = stream.isa();
  if (p.heads / p.kv_heads * std::int64_t{p.queries} <= kAttentionDecodeRows) {
    decode(stream, p,
           is_bf16 ? LOCKSTEP_BY_ISA(isa, attention_decode_bf16)
                   : LOCKSTEP_BY_ISA(isa, attention_decode_f32));
  } else {
    forward(stream, p,
            is_bf16 ? LOCKSTEP_BY_ISA(isa, attention_forward_bf16)
                    : LOCKSTEP_BY_ISA(isa, attention_forward_f32));
  }
}

std::int64_t scratch_bytes(const AttentionBackward& op, Isa isa, int threads) {
  const AttentionProblem p = problem_of(op);
  return backward_layout(p, kernels_of(op, isa), threads).bytes;
}

void enqueue(CpuStream& stream, const AttentionBackward& op) {
  AttentionProblem p = problem_of(op);
  const AttentionBackwardKernels& kernels = kernels_of(op, stream.isa());
  const BackwardLayout at = backward_layout(p, kernels, stream.pool().threads());
  const std::int64_t lanes = std::int64_t{16} * at.vectors;
  const std::int64_t tiles = ceil_div(p.queries, lanes);
  const std::int64_t chunks = chunks_of(p);
  const std::int64_t share = p.heads / p.kv_heads;
  const std::int64_t pairs = std::int64_t{p.batches} * p.kv_heads;
  AttentionBackwardWork work{};
  work.vectors = at.vectors;
  work.chunks = narrow(chunks);
  auto* scratch = static_cast<char*>(stream.scratch(at.bytes));

  summarise_segments(p, scratch + at.segments);
  auto* chunk = reinterpret_cast<AttentionChunk*>(scratch + at.chunks);
  cut_chunks(p, lanes, chunk);
  work.chunk = chunk;
  work.dq_partial = reinterpret_cast<float*>(scratch + at.dq);
  for (std::int64_t first = 0; first < pairs; first += at.pairs_at_once) {
    const std::int64_t count = std::min(at.pairs_at_once, pairs - first);
    work.first_pair = narrow(first);
    // The first chunks are seen by the most queries: they go first.
    stream.pool().parallel_for(count * chunks, [&](std::int64_t i, int thread) {
      kernels.chunk(p, work, static_cast<std::int32_t>(first + i % count),
                    static_cast<std::int32_t>(i / count),
                    scratch + at.threads + thread * at.thread_bytes);
    });
    stream.pool().parallel_for(count * share * tiles, [&](std::int64_t i, int) {
      kernels.finish(p, work, static_cast<std::int32_t>(first * share + i / tiles),
                     static_cast<std::int32_t>(i % tiles));
    });
  }
}

}  // namespace lockstep::ops
