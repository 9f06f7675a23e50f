#include "ops/cpu/attention_mask.h"
#include "ops/cpu/attention_pack.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

constexpr float kLog2E = 1.44269504F;

template <class Units>
std::int64_t strip_units(const AttentionProblem& p) {
  return kAttentionBlock * units_of(p.dim, Units::kElements);
}
template <class Units>
std::int64_t depth_units(const AttentionProblem& p) {
  return kAttentionBlock / Units::kElements * round_up(p.dim, kLanes);
}

template <class Units>
std::int64_t packed_block_bytes_of(const AttentionProblem& p) {
  return round_up((strip_units<Units>(p) + depth_units<Units>(p)) * 4, 64);
}

template <class Units>
std::int64_t scratch_bytes_of(const AttentionProblem& p) {
  const std::int64_t lane_units = units_of(p.dim, Units::kElements) + kAttentionBlock +
                                  kAttentionBlock / Units::kElements + round_up(p.dim, kLanes);
  return packed_block_bytes_of<Units>(p) + lane_units * kAttentionMaxLanes * 4;
}

// Keys as strips for the scores, values by depth for the output.
template <class Units, class T>
void pack(const AttentionProblem& p, std::int32_t pair, std::int32_t block, Unit* packed) {
  const std::int64_t b = pair / p.kv_heads;
  const std::int64_t g = pair % p.kv_heads;
  const T* k = static_cast<const T*>(p.k.data) + b * p.k.batch + g * p.k.head;
  const T* v = static_cast<const T*>(p.v.data) + b * p.v.batch + g * p.v.head;
  const T* k_rows[kAttentionBlock];
  const T* v_rows[kAttentionBlock];
  for (std::int32_t i = 0; i < kAttentionBlock; ++i) {
    const std::int64_t j = std::int64_t{block} * kAttentionBlock + i;
    k_rows[i] = j < p.keys ? k + j * p.k.row : nullptr;
    v_rows[i] = j < p.keys ? v + j * p.v.row : nullptr;
  }
  pack_strips<Units>(packed, k_rows, kAttentionBlock, p.dim);
  pack_depth<Units>(packed + strip_units<Units>(p), round_up(p.dim, kLanes), v_rows,
                    kAttentionBlock, p.dim);
}

template <class Units, class T>
void pack_block_of(const AttentionProblem& p, const AttentionForwardWork& work, std::int32_t pair,
                   std::int32_t block) {
  const std::int64_t blocks = (p.keys + kAttentionBlock - 1) / kAttentionBlock;
  pack<Units, T>(p, pair, block,
                 (Unit*)(work.packed + (pair * blocks + block) * packed_block_bytes_of<Units>(p)));
}

// One tile at work.
template <class T, int NV>
struct Tile {
  LaneSpan span;
  const T* q[kAttentionMaxLanes];
  T* out[kAttentionMaxLanes];
  float* lse[kAttentionMaxLanes];
  std::int32_t pair;
  F32x16 top[NV];    // running maximum of the unscaled scores
  F32x16 decay[NV];  // what the last change of the maximum multiplies earlier sums by
  F32x16 sum[NV];    // of the probabilities relative to the maximum
};

template <class T, int NV>
void place_lanes(const AttentionProblem& p, const AttentionForwardWork& work, std::int32_t head,
                 std::int32_t tile, Tile<T, NV>& t) {
  const std::int32_t share = p.heads / p.kv_heads;
  const std::int32_t heads = work.grouped ? p.kv_heads : p.heads;
  const std::int32_t begin = tile * kLanes * NV;
  const std::int32_t rows = work.grouped ? share * p.queries : p.queries;
  const std::int32_t count = rows - begin < kLanes * NV ? rows - begin : kLanes * NV;
  t.span.batch = head / heads;
  t.pair = work.grouped ? head : t.span.batch * p.kv_heads + head % heads / share;
  for (int lane = 0; lane < kAttentionMaxLanes; ++lane) {
    t.q[lane] = nullptr;
    t.out[lane] = nullptr;
    t.lse[lane] = nullptr;
    if (lane >= count) continue;
    const std::int32_t i = work.grouped ? lane % p.queries : begin + lane;
    const std::int64_t h = work.grouped ? head % heads * share + lane / p.queries : head % heads;
    const std::int64_t b = t.span.batch;
    set_lane(p, t.span, lane, p.first_query + i);
    t.q[lane] = static_cast<const T*>(p.q.data) + b * p.q.batch + i * p.q.row + h * p.q.head;
    t.out[lane] = static_cast<T*>(p.out.data) + b * p.out.batch + i * p.out.row + h * p.out.head;
    t.lse[lane] = p.lse + (b * p.heads + h) * p.queries + i;
  }
  fill_lanes(t.span, count);
}

// scores[key of the block][lane] = k . q for R keys; raises the maximum unless keys are yet to be
// masked.
template <class Units, int R, int NV>
LOCKSTEP_INLINE void score_rows(std::int64_t units, bool masked, int row, const Unit* keys,
                                const Unit* panel, float* scores, F32x16 (&top)[NV]) {
  constexpr int kV = NV < kMicroVectors ? NV : kMicroVectors;
  constexpr std::int64_t kRow = kLanes * NV;
  const Unit* strip = keys + row / kStrip * kStrip * units + row % kStrip;
  for (int first = 0; first < NV; first += kV) {
    F32x16 c[R][kV];
    clear(c);
    accumulate<Units, Order::kByDepth>(c, strip, kStrip, panel + first * kLanes, kRow, units,
                                       kStrip * units);
    store_all(scores + row * kRow + first * kLanes, kRow, c);
    if (masked) continue;
    LOCKSTEP_UNROLL
    for (int i = 0; i < kV; ++i) {
      F32x16 most = top[first + i];
      LOCKSTEP_UNROLL
      for (int r = 0; r < R; ++r) most = max(most, c[r][i]);
      top[first + i] = most;
    }
  }
}

template <class Units, int NV>
void score_strips(std::int64_t units, const Visible& v, const Unit* keys, const Unit* panel,
                  float* scores, F32x16 (&top)[NV]) {
  for_micro_rows<NV>(v.begin * kStrip, v.end * kStrip, [&](int row, auto rows) LOCKSTEP_LAMBDA {
    score_rows<Units, decltype(rows)::kCount>(units, v.masked, row, keys, panel, scores, top);
  });
}

// Masked scores become -infinity; raises the maximum by the others.
template <int NV>
void mask_scores(const AttentionProblem& p, const LaneSpan& span, std::int32_t block,
                 const Visible& v, float* scores, F32x16 (&top)[NV]) {
  constexpr std::int64_t kRow = kLanes * NV;
  for (int i = 0; i < NV; ++i) {
    F32x16 most = top[i];
    for (int row = v.begin * kStrip; row < v.end * kStrip; ++row) {
      float* score = scores + row * kRow + i * kLanes;
      const U32x16 mask = sees(p, span, i * kLanes, block * kAttentionBlock + row);
      const F32x16 x = select(mask, load(score), splat(-__builtin_inff()));
      store(score, x);
      most = max(most, x);
    }
    top[i] = most;
  }
}

template <class Units, class T, int NV>
void score_block(const AttentionProblem& p, Tile<T, NV>& t, std::int32_t block, const Visible& v,
                 const Unit* keys, const Unit* panel, float* scores) {
  F32x16 top[NV];
  for (int i = 0; i < NV; ++i) top[i] = t.top[i];
  score_strips<Units>(units_of(p.dim, Units::kElements), v, keys, panel, scores, top);
  if (v.masked) mask_scores(p, t.span, block, v, scores, top);
  const F32x16 scale = splat(p.scale * kLog2E);
  for (int i = 0; i < NV; ++i) {
    t.decay[i] = exp2((t.top[i] - top[i]) * scale);
    t.top[i] = top[i];
  }
}

// weights[unit of keys][lane] = 2^(scaled score - maximum), rounded to T, and their sum before
// rounding.
template <class Units, class T, int NV>
void weigh_block(const AttentionProblem& p, Tile<T, NV>& t, const Visible& v, const float* scores,
                 Unit* weights) {
  constexpr std::int64_t kRow = kLanes * NV;
  const F32x16 scale = splat(p.scale * kLog2E);
  for (int i = 0; i < NV; ++i) {
    const F32x16 top = t.top[i];
    F32x16 sum = t.sum[i] * t.decay[i];
    for (int row = v.begin * kStrip; row < v.end * kStrip; row += Units::kElements) {
      const float* score = scores + row * kRow + i * kLanes;
      Unit* weight = weights + row / Units::kElements * kRow + i * kLanes;
      const F32x16 first = exp2((load(score) - top) * scale);
      sum = sum + first;
      if constexpr (Units::kElements == 2) {
        const F32x16 second = exp2((load(score + kRow) - top) * scale);
        sum = sum + second;
        store_units(weight, Units::pair(first, second));
      } else {
        store_units(weight, bits_of(rounded_to<T>(first)));
      }
    }
    t.sum[i] = sum;
  }
}

// out[column][lane] = out * decay + values . weights
template <class Units, int NV>
void add_values(std::int64_t columns, const F32x16 (&decay)[NV], const Visible& v,
                const Unit* values, const Unit* weights, float* out) {
  constexpr int kV = NV < kMicroVectors ? NV : kMicroVectors;
  constexpr std::int64_t kRow = kLanes * NV;
  const std::int64_t begin = v.begin * kStrip / Units::kElements;
  const std::int64_t depth = (v.end - v.begin) * kStrip / Units::kElements;
  for (std::int64_t column = 0; column < columns; column += kRowsBeside<kV>) {
    for (int first = 0; first < NV; first += kV) {
      float* to = out + column * kRow + first * kLanes;
      F32x16 c[kRowsBeside<kV>][kV];
      LOCKSTEP_UNROLL
      for (int r = 0; r < kRowsBeside<kV>; ++r) {
        LOCKSTEP_UNROLL
        for (int i = 0; i < kV; ++i) c[r][i] = load(to + r * kRow + i * kLanes) * decay[first + i];
      }
      accumulate<Units, Order::kByDepth>(c, values + begin * columns + column, columns,
                                         weights + begin * kRow + first * kLanes, kRow, depth);
      store_all(to, kRow, c);
    }
  }
}

template <class T, int NV>
void finish_tile(const AttentionProblem& p, const Tile<T, NV>& t, const float* out) {
  for (int i = 0; i < NV; ++i) {
    store_rows(t.out, out, kLanes * NV, i * kLanes, splat(1.0F) / t.sum[i], p.dim);
    float top[kLanes];
    float sum[kLanes];
    store(top, t.top[i]);
    store(sum, t.sum[i]);
    for (int lane = 0; lane < kLanes; ++lane) {
      float* lse = t.lse[i * kLanes + lane];
      if (lse != nullptr) *lse = top[lane] * p.scale + __builtin_logf(sum[lane]);
    }
  }
}

template <class Units, class T, int NV>
void run_tile(const AttentionProblem& p, const AttentionForwardWork& work, std::int32_t head,
              std::int32_t tile, char* scratch) {
  constexpr std::int64_t kRow = kLanes * NV;
  Tile<T, NV> t;
  place_lanes(p, work, head, tile, t);
  const std::int64_t columns = round_up(p.dim, kLanes);
  Unit* own_block = (Unit*)scratch;
  Unit* panel = (Unit*)(scratch + packed_block_bytes_of<Units>(p));
  float* scores = (float*)(panel + units_of(p.dim, Units::kElements) * kRow);
  Unit* weights = (Unit*)(scores + kAttentionBlock * kRow);
  float* out = (float*)(weights + kAttentionBlock / Units::kElements * kRow);

  for (int i = 0; i < NV; ++i) {
    pack_panel<Units>(panel, kRow, i * kLanes, t.q, p.dim);
    t.top[i] = splat(-1e30F);  // finite: a row that has seen no key yet has differences of zero
    t.sum[i] = zero();
  }
  __builtin_memset(out, 0, static_cast<std::size_t>(columns * kRow) * sizeof(float));
  const std::int64_t blocks = (p.keys + kAttentionBlock - 1) / kAttentionBlock;
  for (std::int32_t block = first_block(p, t.span); block < end_block(t.span); ++block) {
    const Visible v = visible_strips(p, t.span, block);
    if (v.begin == v.end) continue;
    const Unit* keys = own_block;
    if (work.packed == nullptr) {
      pack<Units, T>(p, t.pair, block, own_block);
    } else {
      keys =
          (const Unit*)(work.packed + (t.pair * blocks + block) * packed_block_bytes_of<Units>(p));
    }
    score_block<Units>(p, t, block, v, keys, panel, scores);
    weigh_block<Units>(p, t, v, scores, weights);
    add_values<Units>(columns, t.decay, v, keys + strip_units<Units>(p), weights, out);
  }
  finish_tile(p, t, out);
}

template <class Units, class T>
void forward_tile_of(const AttentionProblem& p, const AttentionForwardWork& work, std::int32_t head,
                     std::int32_t tile, char* scratch) {
  if (work.vectors == 1) return run_tile<Units, T, 1>(p, work, head, tile, scratch);
  run_tile<Units, T, 2>(p, work, head, tile, scratch);
}

template <class Units, class T>
constexpr AttentionForwardKernels kernels() {
  return {packed_block_bytes_of<Units>, scratch_bytes_of<Units>, pack_block_of<Units, T>,
          forward_tile_of<Units, T>};
}

}  // namespace

const AttentionForwardKernels attention_forward_f32 = kernels<SingleUnits, float>();
const AttentionForwardKernels attention_forward_bf16 = kernels<Bf16Units, bf16>();

}  // namespace lockstep::ops::LOCKSTEP_ISA
