// What the contract promises to the last bit: a row does not depend on threads, on other rows or
// sequences, on where queries begin, or on memory that no query sees.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/attention.h"
#include "ops/attention_test_case.h"

namespace lockstep::ops {
namespace {

using Shape = ref::AttentionShape;

Shape shape(std::int64_t batches, std::int64_t length, std::int64_t heads, std::int64_t kv_heads,
            std::int64_t dim, std::int64_t window) {
  return {.batches = batches,
          .queries = length,
          .keys = length,
          .heads = heads,
          .kv_heads = kv_heads,
          .dim = dim,
          .window = window};
}

// Queries [first, first + count) against the keys before them and `extra` keys of not-a-number.
AttentionCase rows_of(const AttentionCase& full, std::int64_t first, std::int64_t count,
                      std::int64_t extra) {
  AttentionCase c = full;
  const auto q_row = static_cast<std::size_t>(full.s.heads * full.s.dim);
  const auto k_row = static_cast<std::size_t>(full.s.kv_heads * full.s.dim);
  const auto begin = static_cast<std::size_t>(first);
  const auto end = static_cast<std::size_t>(first + count);
  const auto keys = static_cast<std::size_t>(first + count + extra);
  c.s.first_query = first;
  c.s.queries = count;
  c.s.keys = first + count + extra;
  c.q.assign(full.q.data() + begin * q_row, full.q.data() + end * q_row);
  for (std::vector<double>* x : {&c.k, &c.v}) {
    x->resize(end * k_row);
    x->resize(keys * k_row, std::numeric_limits<double>::quiet_NaN());
  }
  if (!c.segments.empty()) c.segments.resize(keys, c.segments[end - 1]);
  return c;
}

template <class T>
class AttentionBits : public testing::Test {};
using Types = testing::Types<float, bf16>;
TYPED_TEST_SUITE(AttentionBits, Types);

TYPED_TEST(AttentionBits, DoNotDependOnTheNumberOfThreads) {
  for (const Isa isa : isas_here()) {
    for (const std::int64_t window : {0, 100}) {
      AttentionCase c(shape(2, 530, 4, 2, 16, window));
      c.split_documents();
      CpuStream one(1, isa);
      const auto forward = run_forward<TypeParam>(one, c);
      const auto lse = as<double>(std::vector<double>(forward.lse.begin(), forward.lse.end()));
      std::vector<double> out;
      for (const TypeParam x : forward.out) out.push_back(to_float(x));
      const auto backward = run_backward<TypeParam>(one, c, out, lse);
      for (const int threads : {2, 3}) {
        CpuStream stream(threads, isa);
        const auto again = run_forward<TypeParam>(stream, c);
        EXPECT_EQ(again.out, forward.out) << name_of(isa);
        EXPECT_EQ(again.lse, forward.lse) << name_of(isa);
        const auto back = run_backward<TypeParam>(stream, c, out, lse);
        EXPECT_EQ(back.dq, backward.dq) << name_of(isa);
        EXPECT_EQ(back.dk, backward.dk) << name_of(isa);
        EXPECT_EQ(back.dv, backward.dv) << name_of(isa);
      }
    }
  }
}

// Any run of queries, alone or many, with whatever lies behind the last of them.
TYPED_TEST(AttentionBits, DoNotDependOnWhichQueriesAreAsked) {
  constexpr std::int64_t kLength = 150;
  for (const Isa isa : isas_here()) {
    CpuStream stream(1, isa);
    for (const std::int64_t window : {0, 5, 70}) {
      for (const std::int64_t kv_heads : {4, 2, 1}) {
        AttentionCase c(shape(1, kLength, 4, kv_heads, 40, window));
        if (window == 70) c.scatter_documents();
        const auto full = run_forward<TypeParam>(stream, c);
        const std::size_t row = 4 * 40;
        for (const std::int64_t count : {1, 2, 3, 8, 9, 40, 60}) {
          for (std::int64_t first = 0; first + count <= kLength; first += 1 + count / 2 * 3) {
            const auto part = run_forward<TypeParam>(stream, rows_of(c, first, count, first % 70));
            const auto begin = static_cast<std::size_t>(first);
            for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
              const TypeParam* want = full.out.data() + (begin + i) * row;
              const TypeParam* got = part.out.data() + i * row;
              ASSERT_TRUE(std::equal(got, got + row, want))
                  << name_of(isa) << " window " << window << " kv heads " << kv_heads << " row "
                  << begin + i << " of " << count;
              for (std::size_t h = 0; h < 4; ++h) {
                ASSERT_EQ(part.lse[h * static_cast<std::size_t>(count) + i],
                          full.lse[h * kLength + begin + i]);
              }
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(AttentionBits, DoNotDependOnOtherSequences) {
  for (const Isa isa : isas_here()) {
    CpuStream stream(2, isa);
    const AttentionCase both(shape(2, 100, 2, 1, 24, 0));
    const AttentionReference reference(both);
    const auto forward = run_forward<TypeParam>(stream, both);
    const auto backward = run_backward<TypeParam>(stream, both, reference.out, reference.lse);
    AttentionCase second(shape(1, 100, 2, 1, 24, 0));
    const auto half = [](const auto& x) {
      auto y = x;
      y.erase(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(y.size() / 2));
      return y;
    };
    second.q = half(both.q);
    second.k = half(both.k);
    second.v = half(both.v);
    second.dout = half(both.dout);
    const auto alone = run_forward<TypeParam>(stream, second);
    EXPECT_EQ(alone.out, half(forward.out)) << name_of(isa);
    const auto back =
        run_backward<TypeParam>(stream, second, half(reference.out), half(reference.lse));
    EXPECT_EQ(back.dq, half(backward.dq)) << name_of(isa);
    EXPECT_EQ(back.dk, half(backward.dk)) << name_of(isa);
    EXPECT_EQ(back.dv, half(backward.dv)) << name_of(isa);
  }
}

// q, k, v (and their gradients) as parts of one row, as one product writes them.
TYPED_TEST(AttentionBits, DoNotDependOnStrides) {
  for (const Isa isa : isas_here()) {
    CpuStream stream(1, isa);
    AttentionCase c(shape(2, 70, 4, 2, 12, 9));
    const AttentionReference reference(c);
    const auto forward = run_forward<TypeParam>(stream, c);
    const auto backward = run_backward<TypeParam>(stream, c, reference.out, reference.lse);

    std::vector<TypeParam> fused(2 * 70 * 8 * 12);
    std::vector<TypeParam> dfused(fused.size());
    const std::vector<TypeParam> q = as<TypeParam>(c.q), k = as<TypeParam>(c.k),
                                 v = as<TypeParam>(c.v);
    for (std::size_t n = 0; n < 140; ++n) {
      TypeParam* row = fused.data() + n * 96;
      std::copy_n(q.data() + n * 48, 48, row);
      std::copy_n(k.data() + n * 24, 24, row + 48);
      std::copy_n(v.data() + n * 24, 24, row + 72);
    }
    const auto part = [](std::vector<TypeParam>& all, std::int64_t first, std::int64_t heads) {
      return view_of(all, {2, 70, 96}).slice(2, first * 12, heads * 12).split_last(12);
    };
    std::vector<TypeParam> out(c.q.size());
    std::vector<float> lse(reference.lse.size());
    run(stream, AttentionForward{.out = view_of(out, {2, 70, 4, 12}),
                                 .lse = view_of(lse, {2, 4, 70}),
                                 .q = part(fused, 0, 4),
                                 .k = part(fused, 4, 2),
                                 .v = part(fused, 6, 2),
                                 .segments = View(),
                                 .first_query = 0,
                                 .window = 9,
                                 .scale = static_cast<float>(c.s.scale)});
    EXPECT_EQ(out, forward.out) << name_of(isa);
    std::vector<TypeParam> dout = as<TypeParam>(c.dout), o = as<TypeParam>(reference.out);
    std::vector<float> l = as<float>(reference.lse);
    const auto step = [&] {
      run(stream, AttentionBackward{.dq = part(dfused, 0, 4),
                                    .dk = part(dfused, 4, 2),
                                    .dv = part(dfused, 6, 2),
                                    .dout = view_of(dout, {2, 70, 4, 12}),
                                    .out = view_of(o, {2, 70, 4, 12}),
                                    .lse = view_of(l, {2, 4, 70}),
                                    .q = part(fused, 0, 4),
                                    .k = part(fused, 4, 2),
                                    .v = part(fused, 6, 2),
                                    .segments = View(),
                                    .window = 9,
                                    .scale = static_cast<float>(c.s.scale)});
    };
    step();
    for (std::size_t n = 0; n < 140; ++n) {
      const TypeParam* row = dfused.data() + n * 96;
      ASSERT_TRUE(std::equal(row, row + 48, backward.dq.data() + n * 48)) << name_of(isa);
      ASSERT_TRUE(std::equal(row + 48, row + 72, backward.dk.data() + n * 24)) << name_of(isa);
      ASSERT_TRUE(std::equal(row + 72, row + 96, backward.dv.data() + n * 24)) << name_of(isa);
    }
    // A second step of the same shapes asks for no more memory.
    const std::int64_t scratch = stream.scratch_bytes();
    step();
    EXPECT_EQ(stream.scratch_bytes(), scratch);
  }
}

TYPED_TEST(AttentionBits, NotANumberInARowStaysInWhatSeesIt) {
  for (const Isa isa : isas_here()) {
    CpuStream stream(1, isa);
    AttentionCase c(shape(1, 20, 1, 1, 8, 4));
    c.q[7 * 8 + 3] = std::numeric_limits<double>::quiet_NaN();
    const auto got = run_forward<TypeParam>(stream, c);
    for (std::size_t i = 0; i < 20; ++i) {
      EXPECT_EQ(std::isnan(to_float(got.out[i * 8])), i == 7) << name_of(isa);
      EXPECT_EQ(std::isnan(got.lse[i]), i == 7) << name_of(isa);
    }
  }
}

}  // namespace
}  // namespace lockstep::ops
