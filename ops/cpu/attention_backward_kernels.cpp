#include "ops/cpu/attention_mask.h"
#include "ops/cpu/attention_pack.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

constexpr float kLog2E = 1.44269504F;
// Keys that are weighed at a time, at most.
constexpr int kWeighedRows = kRowsBeside < 1 >> kStrip ? kRowsBeside<1> : kStrip;

// Units (4 bytes each) of the parts of a thread's scratch, in the order in which they lie there.
template <class Units>
struct Layout {
  std::int64_t columns;       // dim rounded up to 16
  std::int64_t units;         // of a row
  std::int64_t lanes;         // of a tile
  std::int64_t lane_units;    // lanes / elements of a unit
  std::int64_t panel, rows;   // of one tile: q or dout as panel, as depth
  std::int64_t strips;        // of one block: k or v
  std::int64_t depth;         // of one block: k
  std::int64_t chunk;         // dk or dv of the chunk's keys
  std::int64_t flat, paired;  // of one block x tile: by row, by depth

  Layout(const AttentionProblem& p, int vectors)
      : columns(round_up(p.dim, kLanes)),
        units(units_of(p.dim, Units::kElements)),
        lanes(kLanes * vectors),
        lane_units(lanes / Units::kElements),
        panel(units * lanes),
        rows(lane_units * columns),
        strips(kAttentionBlock * units),
        depth(kAttentionBlock / Units::kElements * columns),
        chunk(kAttentionChunk * columns),
        flat(kAttentionBlock * lane_units),
        paired(kAttentionBlock / Units::kElements * lanes) {}

  [[nodiscard]] std::int64_t tile() const { return 2 * (panel + rows + lanes); }
  [[nodiscard]] std::int64_t total() const {
    return kAttentionGroup * tile() + 2 * strips + depth + 2 * chunk + 2 * flat + paired +
           kWeighedRows * lanes;
  }
};

// A query tile, packed.
struct PackedTile {
  LaneSpan span;
  const Unit* q_panel;
  const Unit* q_rows;
  const Unit* dout_panel;
  const Unit* dout_rows;
  const float* shift;  // -lse log2 e
  const float* delta;  // rowsum(dout * out)
  float* dq;           // [column][lane], this chunk's part
};

struct Block {
  Unit* k_strips;
  Unit* v_strips;
  Unit* k_depth;
  float* dk;  // [key][column], unscaled
  float* dv;
};

// P and dS of one block and tile.
struct Weights {
  float* p_strip;   // [key of a micro-kernel][lane], before rounding
  Unit* p_flat;     // [key][unit of lanes]
  Unit* ds_flat;    // the same
  Unit* ds_paired;  // [unit of keys][lane]
};

template <class T>
const T* row_of(const AttentionTensor& x, std::int64_t b, std::int64_t i, std::int64_t h) {
  return static_cast<const T*>(x.data) + b * x.batch + i * x.row + h * x.head;
}

// delta of the lanes from panels of dout and out. Products and sums in the order in which dP takes
// them, so that a row that sees one key only (out = v) has dP - delta = 0 exactly, as it should.
template <class Units>
void row_sums(const Unit* dout_panel, const Unit* out_panel, std::int64_t lanes, std::int64_t units,
              float* delta) {
  for (std::int64_t lane = 0; lane < lanes; lane += kLanes) {
    F32x16 sum = zero();
    for (std::int64_t u = 0; u < units; ++u) {
      const std::int64_t at = u * lanes + lane;
      sum = Units::multiply_add(load_units(out_panel + at), load_units(dout_panel + at), sum);
    }
    store(delta + lane, sum);
  }
}

template <class Units, class T>
void pack_tile(const AttentionProblem& p, const Layout<Units>& l, std::int32_t b, std::int32_t h,
               std::int32_t tile, Unit* memory, PackedTile& t) {
  const T* q[kAttentionMaxLanes];
  const T* dout[kAttentionMaxLanes];
  const T* out[kAttentionMaxLanes];
  Unit* q_panel = memory;
  Unit* q_rows = q_panel + l.panel;
  Unit* dout_panel = q_rows + l.rows;
  Unit* dout_rows = dout_panel + l.panel;
  float* shift = (float*)(dout_rows + l.rows);
  float* delta = shift + l.lanes;
  const auto begin = static_cast<std::int32_t>(tile * l.lanes);
  std::int32_t count = 0;
  t.span.batch = b;
  for (int lane = 0; lane < l.lanes; ++lane) {
    const std::int32_t i = begin + lane;
    q[lane] = nullptr;
    dout[lane] = nullptr;
    out[lane] = nullptr;
    shift[lane] = 0;
    if (i >= p.queries) continue;
    ++count;
    set_lane(p, t.span, lane, i);
    q[lane] = row_of<T>(p.q, b, i, h);
    dout[lane] = row_of<T>(p.dout, b, i, h);
    shift[lane] = -p.lse[(std::int64_t{b} * p.heads + h) * p.queries + i] * kLog2E;
    out[lane] = row_of<T>(p.out, b, i, h);
  }
  fill_lanes(t.span, count);
  Unit* out_panel = q_panel;  // until q takes the place
  for (std::int64_t lane = 0; lane < l.lanes; lane += kLanes) {
    pack_panel<Units>(out_panel, l.lanes, lane, out, p.dim);
    pack_panel<Units>(dout_panel, l.lanes, lane, dout, p.dim);
  }
  row_sums<Units>(dout_panel, out_panel, l.lanes, units_of(p.dim, Units::kElements), delta);
  for (std::int64_t lane = 0; lane < l.lanes; lane += kLanes) {
    pack_panel<Units>(q_panel, l.lanes, lane, q, p.dim);
  }
  pack_depth<Units>(q_rows, l.columns, q, l.lanes, p.dim);
  pack_depth<Units>(dout_rows, l.columns, dout, l.lanes, p.dim);
  t.q_panel = q_panel;
  t.q_rows = q_rows;
  t.dout_panel = dout_panel;
  t.dout_rows = dout_rows;
  t.shift = shift;
  t.delta = delta;
}

template <class Units, class T>
void pack_block(const AttentionProblem& p, const Layout<Units>& l, std::int32_t b, std::int32_t g,
                std::int32_t block, const Block& to) {
  const T* k[kAttentionBlock];
  const T* v[kAttentionBlock];
  for (std::int32_t i = 0; i < kAttentionBlock; ++i) {
    const std::int32_t j = block * kAttentionBlock + i;
    k[i] = j < p.keys ? row_of<T>(p.k, b, j, g) : nullptr;
    v[i] = j < p.keys ? row_of<T>(p.v, b, j, g) : nullptr;
  }
  pack_strips<Units>(to.k_strips, k, kAttentionBlock, p.dim);
  pack_strips<Units>(to.v_strips, v, kAttentionBlock, p.dim);
  pack_depth<Units>(to.k_depth, l.columns, k, kAttentionBlock, p.dim);
}

// P = 2^(scores - lse) and dS = P * (dP - delta), rounded to T, for R keys from `row` on.
template <class Units, class T, int R, int NV>
LOCKSTEP_INLINE void weigh_rows(const AttentionProblem& p, const PackedTile& t, const Block& block,
                                std::int32_t block_index, bool masked, int row, const Weights& w) {
  constexpr int kV = NV < kMicroVectors ? NV : kMicroVectors;
  constexpr std::int64_t kRow = kLanes * NV;
  constexpr std::int64_t kFlat = kRow / Units::kElements;
  const std::int64_t units = units_of(p.dim, Units::kElements);
  const F32x16 scale = splat(p.scale * kLog2E);
  const std::int64_t strip = row / kStrip * kStrip * units + row % kStrip;
  for (int first = 0; first < NV; first += kV) {
    float* prob = w.p_strip + first * kLanes;
    {
      F32x16 c[R][kV];
      clear(c);
      accumulate<Units, Order::kByDepth>(c, block.k_strips + strip, kStrip,
                                         t.q_panel + first * kLanes, kRow, units, kStrip * units);
      LOCKSTEP_UNROLL
      for (int i = 0; i < kV; ++i) {
        const F32x16 shift = load(t.shift + (first + i) * kLanes);
        LOCKSTEP_UNROLL
        for (int r = 0; r < R; ++r) {
          store(prob + r * kRow + i * kLanes, exp2(fma(c[r][i], scale, shift)));
        }
      }
    }
    if (masked) {
      for (int i = 0; i < kV; ++i) {
        for (int r = 0; r < R; ++r) {
          float* at = prob + r * kRow + i * kLanes;
          const U32x16 mask =
              sees(p, t.span, (first + i) * kLanes, block_index * kAttentionBlock + row + r);
          store(at, from_bits(mask & bits_of(load(at))));
        }
      }
    }
    F32x16 d[R][kV];
    clear(d);
    accumulate<Units, Order::kByDepth>(d, block.v_strips + strip, kStrip,
                                       t.dout_panel + first * kLanes, kRow, units, kStrip * units);
    LOCKSTEP_UNROLL
    for (int i = 0; i < kV; ++i) {
      const F32x16 delta = load(t.delta + (first + i) * kLanes);
      LOCKSTEP_UNROLL
      for (int r = 0; r < R; ++r) {
        const F32x16 weight = load(prob + r * kRow + i * kLanes);
        d[r][i] = weight * (d[r][i] - delta);
        const std::int64_t at = (row + r) * kFlat + (first + i) * (kLanes / Units::kElements);
        Units::template store_lanes<T>(w.p_flat + at, weight);
        Units::template store_lanes<T>(w.ds_flat + at, d[r][i]);
      }
      if constexpr (Units::kElements == 2) {
        LOCKSTEP_UNROLL
        for (int r = 0; r < R; r += 2) {
          store_units(w.ds_paired + (row + r) / 2 * kRow + (first + i) * kLanes,
                      Units::pair(d[r][i], d[r + 1][i]));
        }
      }
    }
  }
}

template <class Units, class T, int NV>
void weigh_pair(const AttentionProblem& p, const PackedTile& t, const Block& block,
                std::int32_t block_index, const Visible& v, const Weights& w) {
  for_micro_rows<NV>(v.begin * kStrip, v.end * kStrip, [&](int row, auto rows) LOCKSTEP_LAMBDA {
    weigh_rows<Units, T, decltype(rows)::kCount, NV>(p, t, block, block_index, v.masked, row, w);
  });
}

// to[key][V vectors of columns] += sum over lanes of weights[key][lane] * rows[lane][columns].
template <class Units, int NV, int V>
void add_rows(std::int64_t columns, const Visible& v, const Unit* weights, const Unit* rows,
              float* to) {
  constexpr std::int64_t kFlat = kLanes * NV / Units::kElements;
  for (int row = v.begin * kStrip; row < v.end * kStrip; row += kMicroRows) {
    float* at = to + row * columns;
    F32x16 c[kMicroRows][V];
    load_all(c, at, columns);
    accumulate<Units, Order::kByRow>(c, weights + row * kFlat, kFlat, rows, columns, kFlat);
    store_all(at, columns, c);
  }
}

template <class Units, int NV>
void add_key_gradient(std::int64_t columns, const Visible& v, const Unit* weights, const Unit* rows,
                      float* to) {
  std::int64_t column = 0;
  for (; column + kMicroVectors * kLanes <= columns; column += kMicroVectors * kLanes) {
    add_rows<Units, NV, kMicroVectors>(columns, v, weights, rows + column, to + column);
  }
  if (column < columns) add_rows<Units, NV, 1>(columns, v, weights, rows + column, to + column);
}

// dq[column][lane] += sum over keys of k[key][column] * dS[key][lane].
template <class Units, int NV>
void add_query_gradient(std::int64_t columns, const Visible& v, const Unit* k_depth,
                        const Unit* ds_paired, float* dq) {
  constexpr int kV = NV < kMicroVectors ? NV : kMicroVectors;
  constexpr std::int64_t kRow = kLanes * NV;
  const std::int64_t begin = v.begin * kStrip / Units::kElements;
  const std::int64_t depth = (v.end - v.begin) * kStrip / Units::kElements;
  for (std::int64_t column = 0; column < columns; column += kRowsBeside<kV>) {
    for (int first = 0; first < NV; first += kV) {
      float* to = dq + column * kRow + first * kLanes;
      F32x16 c[kRowsBeside<kV>][kV];
      load_all(c, to, kRow);
      accumulate<Units, Order::kByDepth>(c, k_depth + begin * columns + column, columns,
                                         ds_paired + begin * kRow + first * kLanes, kRow, depth);
      store_all(to, kRow, c);
    }
  }
}

template <class T>
void store_key_gradient(const AttentionTensor& x, std::int64_t b, std::int64_t g,
                        std::int64_t first, std::int64_t count, const float* from,
                        std::int64_t columns, float factor, std::int64_t dim) {
  for (std::int64_t j = 0; j < count; ++j) {
    T* row = static_cast<T*>(x.data) + b * x.batch + (first + j) * x.row + g * x.head;
    for (std::int64_t d = 0; d < dim; d += kLanes) {
      const F32x16 value = load(from + j * columns + d) * splat(factor) + zero();
      if (dim - d >= kLanes) {
        store(row + d, value);
      } else {
        store(row + d, value, dim - d);
      }
    }
  }
}

// One chunk of keys of one kv head at work.
template <class Units, class T, int NV>
struct ChunkRun {
  const AttentionProblem& p;
  const AttentionBackwardWork& work;
  Layout<Units> l;
  std::int32_t b, g, chunk;
  Unit* tiles;
  Block block;
  Weights weights;
  float* dk;
  float* dv;

  ChunkRun(const AttentionProblem& problem, const AttentionBackwardWork& cut, std::int32_t pair,
           std::int32_t chunk_index, char* scratch)
      : p(problem),
        work(cut),
        l(problem, NV),
        b(pair / problem.kv_heads),
        g(pair % problem.kv_heads),
        chunk(chunk_index) {
    tiles = (Unit*)scratch;
    block.k_strips = tiles + kAttentionGroup * l.tile();
    block.v_strips = block.k_strips + l.strips;
    block.k_depth = block.v_strips + l.strips;
    weights.p_flat = block.k_depth + l.depth;
    weights.ds_flat = weights.p_flat + l.flat;
    // With one element a unit the two layouts of dS are the same.
    weights.ds_paired = Units::kElements == 1 ? weights.ds_flat : weights.ds_flat + l.flat;
    weights.p_strip = (float*)(weights.ds_flat + l.flat + l.paired);
    dk = weights.p_strip + kWeighedRows * l.lanes;
    dv = dk + l.chunk;
  }

  // All blocks of the chunk against tiles [begin, end) of head h.
  void run_group(std::int32_t h, std::int32_t begin, std::int32_t end, float* dq) {
    PackedTile packed[kAttentionGroup];
    const std::int64_t dq_tile = l.columns * l.lanes;
    for (std::int32_t tile = begin; tile < end; ++tile) {
      PackedTile& t = packed[tile - begin];
      pack_tile<Units, T>(p, l, b, h, tile, tiles + (tile - begin) * l.tile(), t);
      t.dq = dq + (tile - work.chunk[chunk].begin) * dq_tile;
    }
    constexpr std::int32_t kBlocks = kAttentionChunk / kAttentionBlock;
    const std::int32_t end_key_block = (p.keys + kAttentionBlock - 1) / kAttentionBlock;
    for (std::int32_t i = chunk * kBlocks; i < (chunk + 1) * kBlocks && i < end_key_block; ++i) {
      bool is_packed = false;
      for (std::int32_t tile = begin; tile < end; ++tile) {
        const PackedTile& t = packed[tile - begin];
        const Visible v = visible_strips(p, t.span, i);
        if (v.begin == v.end) continue;
        if (!is_packed) pack_block<Units, T>(p, l, b, g, i, block);
        is_packed = true;
        const std::int64_t at = (i - chunk * kBlocks) * kAttentionBlock * l.columns;
        weigh_pair<Units, T, NV>(p, t, block, i, v, weights);
        add_key_gradient<Units, NV>(l.columns, v, weights.p_flat, t.dout_rows, dv + at);
        add_key_gradient<Units, NV>(l.columns, v, weights.ds_flat, t.q_rows, dk + at);
        add_query_gradient<Units, NV>(l.columns, v, block.k_depth, weights.ds_paired, t.dq);
      }
    }
  }

  void run() {
    const AttentionChunk& own = work.chunk[chunk];
    const std::int64_t dq_tile = l.columns * l.lanes;
    const std::int32_t share = p.heads / p.kv_heads;
    const std::int64_t head_tiles = work.chunk[work.chunks].offset;
    __builtin_memset(dk, 0, static_cast<std::size_t>(2 * l.chunk) * sizeof(float));
    for (std::int32_t r = 0; r < share; ++r) {
      const std::int64_t row = std::int64_t{b * p.kv_heads + g - work.first_pair} * share + r;
      float* dq = work.dq_partial + (row * head_tiles + own.offset) * dq_tile;
      __builtin_memset(dq, 0, static_cast<std::size_t>((own.end - own.begin) * dq_tile) * 4);
      for (std::int32_t tile = own.begin; tile < own.end; tile += kAttentionGroup) {
        const std::int32_t end =
            own.end - tile < kAttentionGroup ? own.end : tile + kAttentionGroup;
        run_group(g * share + r, tile, end, dq);
      }
    }
    const std::int64_t first = std::int64_t{chunk} * kAttentionChunk;
    const std::int64_t count = p.keys - first < kAttentionChunk ? p.keys - first : kAttentionChunk;
    store_key_gradient<T>(p.dk, b, g, first, count, dk, l.columns, p.scale, p.dim);
    store_key_gradient<T>(p.dv, b, g, first, count, dv, l.columns, 1, p.dim);
  }
};

template <class Units, class T>
void chunk_of(const AttentionProblem& p, const AttentionBackwardWork& work, std::int32_t pair,
              std::int32_t chunk, char* scratch) {
  if (work.vectors == 1) return ChunkRun<Units, T, 1>(p, work, pair, chunk, scratch).run();
  ChunkRun<Units, T, 2>(p, work, pair, chunk, scratch).run();
}

template <class T>
void finish_of(const AttentionProblem& p, const AttentionBackwardWork& work, std::int32_t head,
               std::int32_t tile) {
  const std::int32_t lanes = kLanes * work.vectors;
  const std::int64_t values = round_up(p.dim, kLanes) * lanes;
  const std::int32_t share = p.heads / p.kv_heads;
  const std::int64_t row = head - std::int64_t{work.first_pair} * share;
  float* sum = nullptr;
  for (std::int32_t c = 0; c < work.chunks; ++c) {
    const AttentionChunk& chunk = work.chunk[c];
    if (tile < chunk.begin || tile >= chunk.end) continue;
    float* part =
        work.dq_partial +
        (row * work.chunk[work.chunks].offset + chunk.offset + tile - chunk.begin) * values;
    if (sum == nullptr) {
      sum = part;
      continue;
    }
    for (std::int64_t i = 0; i < values; i += kLanes) {
      store(sum + i, load(sum + i) + load(part + i));
    }
  }
  const std::int32_t b = head / p.heads;
  const std::int32_t h = head % p.heads;
  T* rows[kAttentionMaxLanes];
  for (std::int32_t lane = 0; lane < lanes; ++lane) {
    const std::int64_t i = std::int64_t{tile} * lanes + lane;
    rows[lane] = i < p.queries
                     ? static_cast<T*>(p.dq.data) + b * p.dq.batch + i * p.dq.row + h * p.dq.head
                     : nullptr;
  }
  for (std::int32_t lane = 0; lane < lanes; lane += kLanes) {
    store_rows(rows, sum, lanes, lane, splat(p.scale), p.dim);
  }
}

template <class Units>
std::int64_t scratch_bytes_of(const AttentionProblem& p, int vectors) {
  return Layout<Units>(p, vectors).total() * 4;
}

}  // namespace

const AttentionBackwardKernels attention_backward_f32 = {
    scratch_bytes_of<SingleUnits>, chunk_of<SingleUnits, float>, finish_of<float>};
const AttentionBackwardKernels attention_backward_bf16 = {
    scratch_bytes_of<Bf16Units>, chunk_of<Bf16Units, bf16>, finish_of<bf16>};

}  // namespace lockstep::ops::LOCKSTEP_ISA
