#pragma once

// Which keys a tile sees, and which of its lanes see a key.

#include "ops/cpu/attention_vector.h"

namespace lockstep::ops::LOCKSTEP_ISA {

// The queries of a tile. Lanes past `count` repeat the last query's position and segment.
struct LaneSpan {
  alignas(64) std::int32_t position[kAttentionMaxLanes];
  alignas(64) std::int32_t segment[kAttentionMaxLanes];
  std::int32_t batch;
  std::int32_t count;
  std::int32_t first, last;  // smallest and largest position
  std::int32_t min_segment, max_segment;
};

LOCKSTEP_INLINE void set_lane(const AttentionProblem& p, LaneSpan& s, int lane,
                              std::int32_t position) {
  const std::int32_t segment =
      p.segments == nullptr ? 0 : p.segments[s.batch * p.segments_batch + position];
  s.position[lane] = position;
  s.segment[lane] = segment;
  if (lane == 0) {
    s.first = s.last = position;
    s.min_segment = s.max_segment = segment;
  }
  s.first = position < s.first ? position : s.first;
  s.last = position > s.last ? position : s.last;
  s.min_segment = segment < s.min_segment ? segment : s.min_segment;
  s.max_segment = segment > s.max_segment ? segment : s.max_segment;
}

LOCKSTEP_INLINE void fill_lanes(LaneSpan& s, std::int32_t count) {
  s.count = count;
  for (int lane = count; lane < kAttentionMaxLanes; ++lane) {
    s.position[lane] = s.position[count - 1];
    s.segment[lane] = s.segment[count - 1];
  }
}

// The strips of a block that some lane sees; none where begin = end. `masked`: not every lane sees
// every key of them.
struct Visible {
  int begin, end;
  bool masked;
};

LOCKSTEP_INLINE Visible visible_strips(const AttentionProblem& p, const LaneSpan& s,
                                       std::int32_t block) {
  const std::int32_t start = block * kAttentionBlock;
  const std::int32_t oldest = s.first - p.window + 1;
  const std::int32_t low = start > oldest ? start : oldest;
  const std::int32_t high =
      start + kAttentionBlock - 1 < s.last ? start + kAttentionBlock - 1 : s.last;
  Visible v{0, 0, false};
  if (low > high) return v;
  v.begin = (low - start) / kStrip;
  v.end = (high - start) / kStrip + 1;
  v.masked =
      start + v.end * kStrip - 1 > s.first || s.last - (start + v.begin * kStrip) >= p.window;
  if (p.segments != nullptr) {
    const std::int64_t blocks = (p.keys + kAttentionBlock - 1) / kAttentionBlock;
    const std::int32_t smallest = p.block_min[s.batch * blocks + block];
    const std::int32_t largest = p.block_max[s.batch * blocks + block];
    if (smallest > s.max_segment || largest < s.min_segment) return Visible{0, 0, false};
    v.masked = v.masked || smallest != largest || s.min_segment != s.max_segment;
  }
  return v;
}

// The first block that may be visible, and one past the last.
LOCKSTEP_INLINE std::int32_t first_block(const AttentionProblem& p, const LaneSpan& s) {
  const std::int32_t oldest = s.first - p.window + 1;
  return oldest > 0 ? oldest / kAttentionBlock : 0;
}
LOCKSTEP_INLINE std::int32_t end_block(const LaneSpan& s) { return s.last / kAttentionBlock + 1; }

// All ones in the lanes, from `lane`, that see key j: 0 <= position - j < window, one segment.
LOCKSTEP_INLINE U32x16 sees(const AttentionProblem& p, const LaneSpan& s, int lane,
                            std::int32_t j) {
  const U32x16 position = load_units((const Unit*)s.position + lane);
  const U32x16 near =
      less(position - splat_bits((std::uint32_t)j), splat_bits((std::uint32_t)p.window));
  if (p.segments == nullptr) return near;
  const std::int32_t segment =
      j < p.keys ? p.segments[s.batch * p.segments_batch + j] : 0;  // past the end: never near
  return near &
         equal(load_units((const Unit*)s.segment + lane), splat_bits((std::uint32_t)segment));
}

}  // namespace lockstep::ops::LOCKSTEP_ISA
