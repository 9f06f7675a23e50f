#include "ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "base/error.h"
#include "ops/attention_test_case.h"

namespace lockstep::ops {
namespace {

using Shape = ref::AttentionShape;

Shape shape(std::int64_t length, std::int64_t dim, std::int64_t heads = 1,
            std::int64_t kv_heads = 1) {
  return {.batches = 1,
          .queries = length,
          .keys = length,
          .heads = heads,
          .kv_heads = kv_heads,
          .dim = dim};
}

std::string refusal(const auto& op) {
  try {
    op.check();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBug);
    return error.what();
  }
  return "accepted";
}

TEST(AttentionForward, RefusesWhatItsContractForbids) {
  std::vector<float> memory(4096);
  std::vector<bf16> halves(64);
  float* at = memory.data();
  const auto tensor = [&](std::int64_t t, std::int64_t h) {
    at += 256;
    return View(at, DType::kF32, {1, t, h, 8});
  };
  AttentionForward op{};
  op.q = tensor(3, 4);
  op.out = tensor(3, 4);
  op.k = tensor(5, 2);
  op.v = tensor(5, 2);
  op.lse = View(memory.data(), DType::kF32, {1, 4, 3});
  op.first_query = 2;
  op.scale = 1;
  EXPECT_EQ(refusal(op), "accepted");
  AttentionForward bad = op;
  bad.first_query = 3;
  EXPECT_NE(refusal(bad).find("queries 3 to 6 of 5 keys"), std::string::npos) << refusal(bad);
  bad = op;
  bad.window = -1;
  EXPECT_NE(refusal(bad).find("window -1"), std::string::npos) << refusal(bad);
  bad = op;
  bad.scale = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(refusal(bad).find("scale"), std::string::npos) << refusal(bad);
  bad = op;
  bad.k = tensor(5, 3);
  bad.v = tensor(5, 3);
  EXPECT_NE(refusal(bad).find("4 query heads"), std::string::npos) << refusal(bad);
  bad = op;
  bad.v = tensor(4, 2);
  EXPECT_NE(refusal(bad).find("v: f32 [1, 4, 2, 8]"), std::string::npos) << refusal(bad);
  bad = op;
  bad.out = op.q;
  EXPECT_NE(refusal(bad).find("shares memory"), std::string::npos) << refusal(bad);
  bad = op;
  bad.out = View(halves.data(), DType::kBF16, {1, 1, 8, 8});
  EXPECT_NE(refusal(bad).find("out: bf16 [1, 1, 8, 8]"), std::string::npos) << refusal(bad);
  bad = op;
  bad.lse = View();
  EXPECT_NE(refusal(bad).find("lse"), std::string::npos) << refusal(bad);
  bad = op;
  bad.segments = View(memory.data(), DType::kI32, {1, 4});
  EXPECT_NE(refusal(bad).find("segments"), std::string::npos) << refusal(bad);
}

TEST(AttentionBackward, RefusesWhatItsContractForbids) {
  std::vector<float> memory(4096);
  float* at = memory.data();
  const auto tensor = [&](std::int64_t t, std::int64_t h) {
    at += 256;
    return View(at, DType::kF32, {1, t, h, 8});
  };
  AttentionBackward op{};
  for (View* view : {&op.q, &op.out, &op.dout, &op.dq}) *view = tensor(3, 4);
  for (View* view : {&op.k, &op.v, &op.dk, &op.dv}) *view = tensor(3, 2);
  op.lse = View(memory.data(), DType::kF32, {1, 4, 3});
  op.scale = 1;
  EXPECT_EQ(refusal(op), "accepted");
  AttentionBackward bad = op;
  bad.dk = tensor(4, 2);
  EXPECT_NE(refusal(bad).find("dk: f32 [1, 4, 2, 8]"), std::string::npos) << refusal(bad);
  bad = op;
  bad.dv = op.v;
  EXPECT_NE(refusal(bad).find("shares memory"), std::string::npos) << refusal(bad);
  bad = op;
  bad.scale = 0;
  EXPECT_NE(refusal(bad).find("scale 0"), std::string::npos) << refusal(bad);
}

TEST(Attention, CountsThePairsThatTheMaskLetsThrough) {
  EXPECT_EQ(attention_pairs(4, 0, 0), 10);  // 1 + 2 + 3 + 4
  EXPECT_EQ(attention_pairs(4, 0, 2), 7);   // 1 + 2 + 2 + 2
  EXPECT_EQ(attention_pairs(2, 3, 0), 9);   // 4 + 5
  EXPECT_EQ(attention_pairs(2, 3, 3), 6);   // 3 + 3
  EXPECT_EQ(attention_pairs(1, 0, 5), 1);
  std::vector<std::int32_t> segments = {4, 4, 4, 9, 9};
  std::vector<float> rows(5 * 8);
  AttentionForward op{};
  op.q = op.k = op.v = op.out = View(rows.data(), DType::kF32, {1, 5, 2, 4});
  op.lse = View(rows.data(), DType::kF32, {1, 2, 5});
  op.segments = View(segments.data(), DType::kI32, {1, 5});
  EXPECT_EQ(op.flops(), 4 * 8 * 9);  // 1 + 2 + 3, 1 + 2
  op.window = 2;
  EXPECT_EQ(op.flops(), 4 * 8 * 8);  // 1 + 2 + 2, 1 + 2
}

template <class T>
class AttentionOf : public testing::Test {};
using Types = testing::Types<float, bf16>;
TYPED_TEST_SUITE(AttentionOf, Types);

TYPED_TEST(AttentionOf, WindowOfOneGivesTheValueItself) {
  for (const Isa isa : isas_here()) {
    CpuStream stream(1, isa);
    AttentionCase c(shape(70, 20, 2, 2));
    c.s.window = 1;
    EXPECT_EQ(run_forward<TypeParam>(stream, c).out, as<TypeParam>(c.v)) << name_of(isa);
  }
}

TYPED_TEST(AttentionOf, EqualScoresGiveTheMeanOfTheVisibleValues) {
  for (const Isa isa : isas_here()) {
    CpuStream stream(1, isa);
    AttentionCase c(shape(100, 4));
    c.s.window = 4;
    c.q.assign(c.q.size(), 0);
    for (std::size_t i = 0; i < c.v.size(); ++i) c.v[i] = static_cast<double>(i / 4 % 8);
    const auto got = run_forward<TypeParam>(stream, c);
    for (std::size_t i = 0; i < 100; ++i) {
      double sum = 0;
      const std::size_t first = i < 3 ? 0 : i - 3;
      for (std::size_t j = first; j <= i; ++j) sum += static_cast<double>(j % 8);
      const double count = static_cast<double>(i - first + 1);
      // Small integers over 1 to 4: one rounding, two for thirds.
      EXPECT_NEAR(to_float(got.out[4 * i]), sum / count,
                  relative_error<TypeParam>(c.s) * sum / count);
      EXPECT_NEAR(got.lse[i], std::log(count), 1e-6);
    }
  }
}

// Row i of v is the i-th unit vector, so out[i][j] is the probability that i gives to j.
TYPED_TEST(AttentionOf, SeesExactlyTheKeysOfItsWindowAndDocument) {
  for (const Isa isa : isas_here()) {
    CpuStream stream(1, isa);
    for (const std::int64_t window : {0, 1, 2, 63, 64, 65, 129, 130, 500}) {
      for (const bool documents : {false, true}) {
        AttentionCase c(shape(130, 130));
        c.s.window = window;
        if (documents) c.split_documents();
        c.v.assign(c.v.size(), 0);
        for (std::size_t j = 0; j < 130; ++j) c.v[j * 131] = 1;
        const auto got = run_forward<TypeParam>(stream, c);
        for (std::int64_t i = 0; i < 130; ++i) {
          for (std::int64_t j = 0; j < 130; ++j) {
            const bool near = i - j >= 0 && (window == 0 || i - j < window);
            const bool same = !documents || c.segments[static_cast<std::size_t>(i)] ==
                                                c.segments[static_cast<std::size_t>(j)];
            ASSERT_EQ(to_float(got.out[static_cast<std::size_t>(i * 130 + j)]) > 0, near && same)
                << name_of(isa) << " window " << window << " " << i << " sees " << j;
          }
        }
      }
    }
  }
}

// Query 1 scores x against key 0 and 0 against itself. With v = (1, 0) and x below -26, out is the
// weight of key 0 to the last bit: 1 + e^x rounds to 1.
TEST(AttentionForward, WeightsAreWithinTwoUnitsOfTheExponential) {
  for (const Isa isa : isas_here()) {
    CpuStream stream(1, isa);
    double worst = 0;
    for (double x = -125.9; x < -26; x += 0.0171) {
      AttentionCase c(shape(2, 2));
      c.s.scale = 0.693147181F;  // in base 2 the score is then x itself
      const float score = static_cast<float>(x);
      c.q = {0, 0, 1, 0};
      c.k = {score, 0, 0, 0};
      c.v = {1, 1, 0, 0};
      const double want = std::exp2(static_cast<double>(score));
      const double got = run_forward<float>(stream, c).out[2];
      worst = std::max(worst, std::abs(got - want) / std::ldexp(1.0, std::ilogb(want) - 23));
    }
    EXPECT_LE(worst, 2) << name_of(isa);
    EXPECT_GT(worst, 0.1) << name_of(isa);
  }
}

TEST(AttentionBackward, ReferenceMatchesComplexStep) {
  using Complex = std::complex<double>;
  constexpr double kStep = 1e-50;
  for (const std::int64_t window : {0, 3}) {
    AttentionCase c({.batches = 2,
                     .queries = 7,
                     .keys = 7,
                     .heads = 4,
                     .kv_heads = 2,
                     .dim = 6,
                     .window = window});
    c.split_documents();
    const AttentionReference reference(c);
    const auto derivative = [&](std::size_t tensor, std::size_t at) {
      std::vector<Complex> x[3] = {as<Complex>(c.q), as<Complex>(c.k), as<Complex>(c.v)};
      x[tensor][at] += Complex(0, kStep);
      std::vector<Complex> out(c.q.size()), lse(reference.lse.size());
      ref::attention_forward<Complex>(out, lse, c.s, x[0], x[1], x[2], c.segments);
      double loss = 0;
      for (std::size_t i = 0; i < out.size(); ++i) loss += c.dout[i] * std::imag(out[i]) / kStep;
      return loss;
    };
    for (std::size_t i = 0; i < c.q.size(); i += 5) {
      EXPECT_NEAR(reference.dq[i], derivative(0, i), 1e-12);
    }
    for (std::size_t i = 0; i < c.k.size(); i += 3) {
      EXPECT_NEAR(reference.dk[i], derivative(1, i), 1e-12);
      EXPECT_NEAR(reference.dv[i], derivative(2, i), 1e-12);
    }
  }
}

template <class T>
void expect_matches(const AttentionCase& c, const AttentionReference& r) {
  for (const Isa isa : isas_here()) {
    CpuStream stream(1, isa);
    const std::string what =
        concat(name_of(isa), " ", name_of(kDTypeOf<T>), " T ", c.s.queries, " K ", c.s.dim,
               " heads ", c.s.heads, "/", c.s.kv_heads, " window ", c.s.window, " documents ",
               c.segments.empty() ? 0 : 1);
    const double error = relative_error<T>(c.s);
    const auto forward = run_forward<T>(stream, c);
    ASSERT_EQ(first_difference(forward.out, r.out, r.out_bound, error), -1) << "out " << what;
    for (std::size_t i = 0; i < r.lse.size(); ++i) {
      ASSERT_NEAR(forward.lse[i], r.lse[i], f32_error(c.s) * (1 + std::abs(r.lse[i]))) << what;
    }
    if (r.dq.empty()) continue;
    const auto backward = run_backward<T>(stream, c, r.out, r.lse);
    ASSERT_EQ(first_difference(backward.dq, r.dq, r.dq_bound, error), -1) << "dq " << what;
    ASSERT_EQ(first_difference(backward.dk, r.dk, r.dk_bound, error), -1) << "dk " << what;
    ASSERT_EQ(first_difference(backward.dv, r.dv, r.dv_bound, error), -1) << "dv " << what;
  }
}

// Every length with every window; head dims, groups and documents take turns.
TEST(Attention, MatchesTheReferenceOverOddShapes) {
  constexpr std::int64_t kDims[] = {4, 24, 64, 128};
  constexpr std::int64_t kHeads[][2] = {{1, 1}, {2, 2}, {4, 2}, {4, 1}};
  std::size_t turn = 0;
  for (const std::int64_t length : {1, 7, 8, 9, 63, 64, 65, 127, 200}) {
    for (const std::int64_t window :
         std::initializer_list<std::int64_t>{0, 1, 4, 8, length, length + 5}) {
      const std::size_t heads = turn % 4;
      AttentionCase c({.batches = length < 64 ? 2 : 1,
                       .queries = length,
                       .keys = length,
                       .heads = kHeads[heads][0],
                       .kv_heads = kHeads[heads][1],
                       .dim = kDims[(turn + turn / 4) % 4],
                       .window = window});
      if (turn % 3 == 1) c.split_documents();
      if (turn % 3 == 2) c.scatter_documents();
      ++turn;
      const AttentionReference reference(c);
      expect_matches<float>(c, reference);
      expect_matches<bf16>(c, reference);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Attention, MatchesTheReferenceForEveryHeadDim) {
  for (const std::int64_t dim : {1, 2, 3, 16, 32, 48, 80, 96, 208, 256}) {
    AttentionCase c(shape(66, dim, 2, 1));
    const AttentionReference reference(c);
    expect_matches<float>(c, reference);
    expect_matches<bf16>(c, reference);
    if (HasFatalFailure()) return;
  }
}

// More than one chunk of keys and more than one group of tiles.
TEST(Attention, MatchesTheReferenceOnLongSequences) {
  for (const std::int64_t window : {0, 100, 540}) {
    AttentionCase c(shape(600, 16, 2, 1));
    c.s.window = window;
    if (window == 540) c.scatter_documents();
    const AttentionReference reference(c);
    expect_matches<float>(c, reference);
    expect_matches<bf16>(c, reference);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace lockstep::ops
