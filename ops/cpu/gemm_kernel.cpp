#include "ops/cpu/gemm_kernel.h"

#include "ops/cpu/gemm_pack.h"
#include "ops/cpu/simd.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

// sum += a b, in place. As assembly on AVX-512 because g++ 12 otherwise writes the sum over a
// factor and then, 28 of 32 registers being taken, moves and spills sums in the inner loop.
LOCKSTEP_INLINE void multiply_add(F32x16& sum, const F32x16& a, const F32x16& b) {
#if defined(__AVX512F__)
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum.part[0]) : "v"(a.part[0]), "v"(b.part[0]));
#else
  sum = fma(a, b, sum);
#endif
}

// One step of the loop over k: kDepth elements, in kParts passes over the register tile. a(...)
// finds the element of A for row r and element i of k; in panels a step's elements of one row are
// kDepth apart for bf16 pairs and kRows apart otherwise.

struct StepF32 {
  using A = float;
  using B = float;
  static constexpr int kDepth = 1;
  static constexpr int kPasses = 1;
  static constexpr bool kWidens = false;
  template <int kPass>
  static LOCKSTEP_INLINE F32x16 b(const B* p) {
    return load(p);
  }
  template <int kPass>
  static LOCKSTEP_INLINE F32x16 a_rows(const A* p) {
    return splat(*p);
  }
  template <int kPass>
  static LOCKSTEP_INLINE F32x16 a_panels(const A* p) {
    return splat(*p);
  }
  static LOCKSTEP_INLINE void add(F32x16& sum, const F32x16& a, const F32x16& b) {
    multiply_add(sum, a, b);
  }
};

#if defined(__AVX512BF16__)
struct StepBf16 {
  using A = bf16;
  using B = bf16;
  static constexpr int kDepth = 2;
  static constexpr int kPasses = 1;
  static constexpr bool kWidens = false;
  template <int kPass>
  static LOCKSTEP_INLINE __m512i b(const B* p) {
    return _mm512_loadu_si512(p);
  }
  template <int kPass>
  static LOCKSTEP_INLINE __m512i a_rows(const A* p) {
    int pair;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return _mm512_set1_epi32(pair);
  }
  template <int kPass>
  static LOCKSTEP_INLINE __m512i a_panels(const A* p) {
    return a_rows<0>(p);
  }
  static LOCKSTEP_INLINE void add(F32x16& sum, const __m512i& a, const __m512i& b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.part[0]) : "v"(a), "v"(b));
  }
};
#else
// bf16 B against A that was widened beforehand: the even elements of k, then the odd ones.
struct StepBf16 {
  using A = float;
  using B = bf16;
  static constexpr int kDepth = 2;
  static constexpr int kPasses = 2;
  static constexpr bool kWidens = true;
  template <int kPass>
  static LOCKSTEP_INLINE F32x16 b(const B* p) {
    const U32x16 pairs = bits_of(load(reinterpret_cast<const float*>(p)));
    if constexpr (kPass == 0) return from_bits(shift_left<16>(pairs));
    return from_bits(pairs & splat_bits(0xffff0000U));
  }
  template <int kPass>
  static LOCKSTEP_INLINE F32x16 a_rows(const A* p) {
    return splat(p[kPass]);
  }
  template <int kPass>
  static LOCKSTEP_INLINE F32x16 a_panels(const A* p) {
    return splat(p[kPass * kRows]);
  }
  static LOCKSTEP_INLINE void add(F32x16& sum, const F32x16& a, const F32x16& b) {
    multiply_add(sum, a, b);
  }
};
#endif

template <int kR, int kV>
struct Sums {
  F32x16 at[kR][kV];
};

// The same with B, widened, left in `wide` as f32 rows for the tiles after.
struct StepKeepWide : StepBf16 {};
template <class Step>
constexpr bool kKeepsWide = false;
template <>
constexpr bool kKeepsWide<StepKeepWide> = true;

// Multiples of A's row stride. The odd ones stay in registers, opaque to the compiler, so that
// every row is one address of the loop's: integer work would take ports from the multiply-adds.
struct RowStrides {
  std::int64_t one, three, five, seven;
  explicit LOCKSTEP_INLINE RowStrides(std::int64_t stride)
      : one(stride), three(3 * stride), five(5 * stride), seven(7 * stride) {
    asm("" : "+r"(three), "+r"(five), "+r"(seven));
  }
  LOCKSTEP_INLINE std::int64_t operator[](int row) const {
    return row == 7 ? seven : row == 6 ? 2 * three : row == 5 ? five : row == 3 ? three : row * one;
  }
};

template <class Step, bool kPanels, int kPass, int kR, int kV>
LOCKSTEP_INLINE void pass(Sums<kR, kV>& sums, const typename Step::A* a, const RowStrides& strides,
                          const typename Step::B* b, [[maybe_unused]] float* wide) {
  using Column = decltype(Step::template b<kPass>(b));
  Column column[kV];
#pragma GCC unroll 4
  for (int v = 0; v < kV; ++v) column[v] = Step::template b<kPass>(b + v * kLanes * Step::kDepth);
  if constexpr (kKeepsWide<Step>) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) store(wide + v * kLanes, column[v]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    Column row;
    if constexpr (kPanels) {
      // Pairs of bf16 lie side by side; f32 elements of one row lie kRows apart.
      constexpr int kApart = sizeof(typename Step::A) == 2 ? Step::kDepth : 1;
      row = Step::template a_panels<kPass>(a + r * kApart);
    } else {
      row = Step::template a_rows<kPass>(a + strides[r]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) Step::add(sums.at[r][v], row, column[v]);
  }
}

template <int kR, int kV, class F>
LOCKSTEP_INLINE void each(Sums<kR, kV>& sums, const F& f) {
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) f(sums.at[r][v], r, v);
  }
}

// Sums of the blocks before, of which `from` holds one row of a tile every `stride` elements.
template <int kR, int kV>
LOCKSTEP_INLINE void add_to(Sums<kR, kV>& sums, const float* from, std::int64_t stride) {
  each(sums, [&](F32x16& x, int r, int v)
                 LOCKSTEP_LAMBDA { x = load(from + r * stride + v * kLanes) + x; });
}

template <int kR, int kV>
LOCKSTEP_INLINE void keep(Sums<kR, kV>& sums, float* to, std::int64_t stride) {
  each(sums, [&](const F32x16& x, int r, int v)
                 LOCKSTEP_LAMBDA { store(to + r * stride + v * kLanes, x); });
}

template <int kR, int kV>
LOCKSTEP_INLINE void finish(Sums<kR, kV>& sums, const PanelProduct& p, std::int64_t row) {
  if (!p.last) {
    keep(sums, p.partial + row * p.partial_stride, p.partial_stride);
    return;
  }
  const std::int64_t tail = p.cols - (kV - 1) * kLanes;
  const bool all = tail == kLanes;
  if (p.store == GemmStore::kBF16) {
    bf16* c = static_cast<bf16*>(p.c) + row * p.c_stride;
    each(sums, [&](F32x16& x, int r, int v) LOCKSTEP_LAMBDA {
      bf16* at = c + r * p.c_stride + v * kLanes;
      v + 1 < kV || all ? store(at, x) : store(at, x, tail);
    });
    return;
  }
  float* c = static_cast<float*>(p.c) + row * p.c_stride;
  const bool adds = p.store == GemmStore::kAddF32;
  each(sums, [&](F32x16& x, int r, int v) LOCKSTEP_LAMBDA {
    float* at = c + r * p.c_stride + v * kLanes;
    const bool whole = v + 1 < kV || all;
    if (adds) x = (whole ? load(at) : load(at, tail)) + x;
    whole ? store(at, x) : store(at, x, tail);
  });
}

// What a tile fetches ahead while it multiplies: its share of what comes next into the second-level
// cache, evenly, so that the fetches do not crowd out its own loads; and the lines of C that it
// will write, whose owner would otherwise be asked for all at once at the end.
struct Ahead {
  const char* next;
  std::int64_t next_lines;  // a call
  const char* c;
  std::int64_t c_bytes;  // from row to row
  std::int64_t c_rows;

  template <int kV>
  LOCKSTEP_INLINE void fetch() {
    for (std::int64_t i = 0; i < next_lines; ++i, next += 64) __builtin_prefetch(next, 0, 2);
    if (c_rows == 0) return;
    for (int v = 0; v < kV; ++v) __builtin_prefetch(c + v * 64, 1, 3);
    c += c_bytes;
    --c_rows;
  }
};

LOCKSTEP_INLINE Ahead ahead_of(const PanelProduct& p, std::int64_t row, int rows,
                               std::int64_t calls) {
  const std::int64_t lines = (p.next_bytes + 63) / 64;
  const std::int64_t tiles = (p.rows + kRows - 1) / kRows;
  const std::int64_t mine = (lines + tiles - 1) / tiles;
  const std::int64_t c_bytes = p.c_stride * (p.store == GemmStore::kBF16 ? 2 : 4);
  return {static_cast<const char*>(p.next) + row / kRows * mine * 64, (mine + calls - 1) / calls,
          static_cast<const char*>(p.c) + row * c_bytes, c_bytes, p.last ? rows : 0};
}

template <class Step, bool kPanels, int kR, int kV>
__attribute__((noinline)) void tile(const PanelProduct& p, const typename Step::A* a,
                                    std::int64_t row) {
  Sums<kR, kV> sums{};
  const auto* b = static_cast<const typename Step::B*>(p.b);
  float* wide = p.wide;
  const std::int64_t step_b = p.width * Step::kDepth;
  constexpr int kStepA = kPanels ? kRows * Step::kDepth : Step::kDepth;
  std::int64_t steps = p.k / Step::kDepth;
  const bool half = Step::kDepth == 2 && p.k % 2 != 0;
  // Padding makes an odd k whole, but for rows of bf16, which nobody padded.
  constexpr bool kPadded = kPanels || sizeof(typename Step::A) == 4;
  if (half && kPadded) ++steps;
  const RowStrides strides(p.a_stride);
  const auto step = [&](int i) LOCKSTEP_LAMBDA {
    pass<Step, kPanels, 0>(sums, a + i * kStepA, strides, b, wide);
    if constexpr (Step::kPasses == 2) {
      pass<Step, kPanels, 1>(sums, a + i * kStepA, strides, b, wide + p.width);
    }
    b += step_b;
    if constexpr (kKeepsWide<Step>) wide += 2 * p.width;
    // Keeps the compiler from mixing the loads of several steps, whose operands with the sums would
    // not fit the registers.
    asm volatile("" : "+r"(b) : : "memory");
  };
  constexpr int kGroup = 8 / Step::kPasses;
  Ahead ahead = ahead_of(p, row, kR, steps < kGroup ? 1 : steps / kGroup);
  const std::int64_t block = p.block / Step::kDepth;
  alignas(64) float kept[kR][kV * kLanes];
  const float* before = p.first ? nullptr : p.partial + row * p.partial_stride;
  std::int64_t before_stride = p.partial_stride;
  for (;;) {
    std::int64_t s = steps < block ? steps : block;
    steps -= s;
    for (; s >= kGroup; s -= kGroup) {
      ahead.template fetch<kV>();
#pragma GCC unroll 8
      for (int i = 0; i < kGroup; ++i) step(i);
      a += kGroup * kStepA;
    }
    for (; s > 0; --s) {
      step(0);
      a += kStepA;
    }
    if constexpr (!kPadded) {
      if (half && steps == 0) {
        bf16 last[kR][2] = {};
        for (int r = 0; r < kR; ++r) last[r][0] = reinterpret_cast<const bf16*>(a)[r * p.a_stride];
        pass<Step, kPanels, 0>(sums, reinterpret_cast<const typename Step::A*>(last), RowStrides(2),
                               b, wide);
      }
    }
    if (before != nullptr) add_to(sums, before, before_stride);
    if (steps == 0) break;
    keep(sums, kept[0], kV * kLanes);
    before = kept[0];
    before_stride = kV * kLanes;
    sums = {};
  }
  finish(sums, p, row);
}

template <class Step, bool kPanels, int kR, int kV>
LOCKSTEP_INLINE std::int64_t sweep(const PanelProduct& p, std::int64_t row) {
  for (; row + kR <= p.rows; row += kR) {
    const auto* a = static_cast<const typename Step::A*>(p.a);
    if constexpr (kPanels) {
      constexpr int kApart = sizeof(typename Step::A) == 2 ? Step::kDepth : 1;
      a += row / kRows * p.a_stride + row % kRows * kApart;
    } else {
      a += row * p.a_stride;
    }
    tile<Step, kPanels, kR, kV>(p, a, row);
  }
  if constexpr (kR > 1) {
    constexpr int kNext = kR > 4 ? 4 : kR / 2;
    return sweep<Step, kPanels, kNext, kV>(p, row);
  }
  return row;
}

template <class Step, bool kPanels, int kV>
LOCKSTEP_INLINE void multiply_rows(const PanelProduct& p) {
  if constexpr (Step::kWidens) {
    if (p.rows > kRows) {
      tile<StepKeepWide, kPanels, kRows, kV>(p, static_cast<const float*>(p.a), 0);
      PanelProduct rest = p;
      rest.b = p.wide;
      rest.k += p.k % 2;
      sweep<StepF32, kPanels, kRows, kV>(rest, kRows);
      return;
    }
  }
  sweep<Step, kPanels, kRows, kV>(p, 0);
}

template <class Step, bool kPanels>
void multiply(const PanelProduct& p) {
  if constexpr (kVectors == 3) {
    if (p.cols > 2 * kLanes) {
      multiply_rows<Step, kPanels, 3>(p);
      return;
    }
    if (p.cols > kLanes) {
      multiply_rows<Step, kPanels, 2>(p);
      return;
    }
  }
  multiply_rows<Step, kPanels, 1>(p);
}

}  // namespace

static_assert(kPairsOfBf16 == (sizeof(StepBf16::A) == 2));

extern const GemmKernels gemm_kernels;
const GemmKernels gemm_kernels = {
    kPanel,
    kRows,
    kPairsOfBf16 ? DType::kBF16 : DType::kF32,
    multiply<StepF32, false>,
    multiply<StepF32, true>,
    multiply<StepBf16, false>,
    multiply<StepBf16, true>,
    pack_b_f32,
    pack_b_bf16,
    pack_b_widening,
    pack_b_rounding,
    pack_bt_f32,
    pack_bt_rounding,
    pack_a_f32,
    pack_a_bf16,
    widen_rows,
};

}  // namespace lockstep::ops::LOCKSTEP_ISA
