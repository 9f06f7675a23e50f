// Attention of very few queries (decoding). Lanes are keys for the scores and columns for the
// output, where the other kernel's lanes are queries, so that no lane idles. Each number is made by
// the same operations in the same order as there, and so has the same bits.

#include "ops/cpu/attention_mask.h"
#include "ops/cpu/attention_pack.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

constexpr float kLog2E = 1.44269504F;
constexpr int kBlockVectors = kAttentionBlock / kLanes;
// Accumulators of one row: enough to hide the latency of a multiply-add.
constexpr int kRowVectors = kNative == 4 ? 2 : 4;

template <class Units>
struct Layout {
  std::int64_t units, columns;
  std::int64_t panel, depth;  // units of a block's keys, values
  std::int64_t row;           // units of one query: q, output

  explicit Layout(const AttentionProblem& p)
      : units(units_of(p.dim, Units::kElements)),
        columns(round_up(p.dim, kLanes)),
        panel(units * kAttentionBlock),
        depth(kAttentionBlock / Units::kElements * columns),
        row(round_up(units, kLanes) + columns) {}
};

template <class Units>
std::int64_t scratch_bytes_of(const AttentionProblem& p) {
  const Layout<Units> l(p);
  return (l.panel + l.depth + kAttentionDecodeRows * l.row) * 4;
}

// A query and what it has gathered so far.
struct Row {
  LaneSpan span;  // one lane
  Unit* q;        // by unit
  float* out;     // by column, relative to the maximum
  float top;      // running maximum of the unscaled scores
  float sum;      // of the probabilities relative to the maximum
};

// c[v] = sum over units of q * keys, for kAttentionBlock keys.
template <class Units>
LOCKSTEP_INLINE void score(const Unit* q, const Unit* panel, std::int64_t units,
                           F32x16 (&s)[kBlockVectors]) {
  LOCKSTEP_UNROLL
  for (int first = 0; first < kBlockVectors; first += kRowVectors) {
    F32x16 c[1][kRowVectors];
    clear(c);
    accumulate<Units, Order::kByRow>(c, q, 0, panel + first * kLanes, kAttentionBlock, units);
    LOCKSTEP_UNROLL
    for (int v = 0; v < kRowVectors; ++v) s[first + v] = c[0][v];
  }
}

LOCKSTEP_INLINE void mask(const AttentionProblem& p, const Row& r, std::int32_t block,
                          F32x16 (&s)[kBlockVectors]) {
  Unit keys[kAttentionBlock];
  Unit segments[kAttentionBlock];
  for (std::int32_t i = 0; i < kAttentionBlock; ++i) {
    const std::int32_t j = block * kAttentionBlock + i;
    keys[i] = (Unit)j;
    segments[i] = p.segments != nullptr && j < p.keys
                      ? (Unit)p.segments[r.span.batch * p.segments_batch + j]
                      : (Unit)r.span.segment[0];
  }
  for (int v = 0; v < kBlockVectors; ++v) {
    const U32x16 distance = splat_bits((Unit)r.span.position[0]) - load_units(keys + v * kLanes);
    const U32x16 seen =
        less(distance, splat_bits((Unit)p.window)) &
        equal(load_units(segments + v * kLanes), splat_bits((Unit)r.span.segment[0]));
    s[v] = select(seen, s[v], splat(-__builtin_inff()));
  }
}

// Turns scores into weights, rounded to T, with their sum taken before rounding; returns what the
// change of the maximum multiplies earlier sums by.
template <class Units, class T>
LOCKSTEP_INLINE F32x16 weigh(float scale, F32x16 (&s)[kBlockVectors], Row& r, Unit* weights) {
  F32x16 most = s[0];
  for (int v = 1; v < kBlockVectors; ++v) most = max(most, s[v]);
  const float highest = hmax(most);
  const float top = r.top > highest ? r.top : highest;
  const F32x16 factor = splat(scale * kLog2E);
  const F32x16 decay = exp2((splat(r.top) - splat(top)) * factor);
  float w[kAttentionBlock];
  for (int v = 0; v < kBlockVectors; ++v) {
    const F32x16 x = exp2((s[v] - splat(top)) * factor);
    store(w + v * kLanes, x);
    Units::template store_lanes<T>(weights + v * (kLanes / Units::kElements), x);
  }
  float lanes[kLanes];
  store(lanes, decay);
  float sum = r.sum * lanes[0];
  for (const float x : w) sum += x;  // in the order of the keys
  r.sum = sum;
  r.top = top;
  return decay;
}

template <class Units, int V>
LOCKSTEP_INLINE void add_columns(std::int64_t columns, const F32x16& decay, const Unit* weights,
                                 const Unit* values, float* out) {
  F32x16 c[1][V];
  LOCKSTEP_UNROLL
  for (int v = 0; v < V; ++v) c[0][v] = load(out + v * kLanes) * decay;
  accumulate<Units, Order::kByRow>(c, weights, 0, values, columns,
                                   kAttentionBlock / Units::kElements);
  LOCKSTEP_UNROLL
  for (int v = 0; v < V; ++v) store(out + v * kLanes, c[0][v]);
}

template <class Units, class T>
void add_block(const AttentionProblem& p, const Layout<Units>& l, std::int32_t block,
               const Visible& visible, const Unit* panel, const Unit* depth, Row& r) {
  F32x16 s[kBlockVectors];
  score<Units>(r.q, panel, l.units, s);
  if (visible.masked || visible.begin > 0 || visible.end < kAttentionBlock / kStrip) {
    mask(p, r, block, s);
  }
  Unit weights[kAttentionBlock / Units::kElements];
  const F32x16 decay = weigh<Units, T>(p.scale, s, r, weights);
  std::int64_t column = 0;
  for (; column + kRowVectors * kLanes <= l.columns; column += kRowVectors * kLanes) {
    add_columns<Units, kRowVectors>(l.columns, decay, weights, depth + column, r.out + column);
  }
  for (; column < l.columns; column += kLanes) {
    add_columns<Units, 1>(l.columns, decay, weights, depth + column, r.out + column);
  }
}

template <class T>
void store_row(const AttentionProblem& p, const Row& r, T* out, float* lse) {
  const F32x16 factor = splat(1.0F) / splat(r.sum);
  for (std::int64_t d = 0; d < p.dim; d += kLanes) {
    const F32x16 x = load(r.out + d) * factor + zero();
    if (p.dim - d >= kLanes) {
      store(out + d, x);
    } else {
      store(out + d, x, p.dim - d);
    }
  }
  *lse = r.top * p.scale + __builtin_logf(r.sum);
}

template <class T>
const T* row_of(const AttentionTensor& x, std::int64_t b, std::int64_t i, std::int64_t h) {
  return static_cast<const T*>(x.data) + b * x.batch + i * x.row + h * x.head;
}

template <class Units, class T>
void start_row(const AttentionProblem& p, const Layout<Units>& l, const T* q, Unit* memory,
               Row& r) {
  r.q = memory;
  r.out = (float*)(memory + round_up(l.units, kLanes));
  for (std::int64_t u = 0; u < l.units; u += kLanes) {
    store_units(r.q + u, row_units<Units>(q, u, p.dim));
  }
  __builtin_memset(r.out, 0, static_cast<std::size_t>(l.columns) * sizeof(float));
  r.top = -1e30F;  // finite: while no key is seen, differences are zero
  r.sum = 0;
}

template <class Units, class T>
void pair_of(const AttentionProblem& p, std::int32_t pair, char* scratch) {
  const Layout<Units> l(p);
  Unit* panel = (Unit*)scratch;
  Unit* depth = panel + l.panel;
  const std::int32_t b = pair / p.kv_heads;
  const std::int32_t g = pair % p.kv_heads;
  const std::int32_t share = p.heads / p.kv_heads;
  const std::int32_t count = share * p.queries;
  Row rows[kAttentionDecodeRows];
  LaneSpan all;
  all.batch = b;
  for (std::int32_t n = 0; n < count; ++n) {
    Row& r = rows[n];
    r.span.batch = b;
    set_lane(p, r.span, 0, p.first_query + n % p.queries);
    set_lane(p, all, n, p.first_query + n % p.queries);
    start_row<Units>(p, l, row_of<T>(p.q, b, n % p.queries, g * share + n / p.queries),
                     depth + l.depth + n * l.row, r);
  }
  for (std::int32_t block = first_block(p, all); block < end_block(all); ++block) {
    const Visible any = visible_strips(p, all, block);
    if (any.begin == any.end) continue;
    const T* k[kAttentionBlock];
    const T* v[kAttentionBlock];
    for (std::int32_t i = 0; i < kAttentionBlock; ++i) {
      const std::int32_t j = block * kAttentionBlock + i;
      k[i] = j < p.keys ? row_of<T>(p.k, b, j, g) : nullptr;
      v[i] = j < p.keys ? row_of<T>(p.v, b, j, g) : nullptr;
    }
    for (int lane = 0; lane < kAttentionBlock; lane += kLanes) {
      pack_panel<Units>(panel, kAttentionBlock, lane, k, p.dim);
    }
    pack_depth<Units>(depth, l.columns, v, kAttentionBlock, p.dim);
    for (std::int32_t n = 0; n < count; ++n) {
      const Visible visible = visible_strips(p, rows[n].span, block);
      if (visible.begin == visible.end) continue;
      add_block<Units, T>(p, l, block, visible, panel, depth, rows[n]);
    }
  }
  for (std::int32_t n = 0; n < count; ++n) {
    const std::int64_t i = n % p.queries;
    const std::int64_t h = g * share + n / p.queries;
    store_row<T>(p, rows[n], const_cast<T*>(row_of<T>(p.out, b, i, h)),
                 p.lse + (std::int64_t{b} * p.heads + h) * p.queries + i);
  }
}

}  // namespace

const AttentionDecodeKernels attention_decode_f32 = {scratch_bytes_of<SingleUnits>,
                                                     pair_of<SingleUnits, float>};
const AttentionDecodeKernels attention_decode_bf16 = {scratch_bytes_of<Bf16Units>,
                                                      pair_of<Bf16Units, bf16>};

}  // namespace lockstep::ops::LOCKSTEP_ISA
