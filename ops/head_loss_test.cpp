#include "ops/head_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "ops/ref/head_loss.h"
#include "ops/ref/matmul.h"
#include "ops/run.h"

namespace lockstep::ops {
namespace {

using Complex = std::complex<double>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
std::vector<double> wide(const std::vector<float>& x) { return {x.begin(), x.end()}; }

// Exact in bf16, so that references start from equal numbers.
std::vector<float> random_values(std::int64_t count, unsigned seed, float unit) {
  std::mt19937 random(seed);
  std::vector<float> values(at(count));
  for (float& x : values) x = static_cast<float>(static_cast<int>(random() % 255) - 127) * unit;
  return values;
}

std::vector<std::int32_t> random_targets(std::int64_t rows, std::int64_t vocab) {
  std::mt19937 random(5);
  std::vector<std::int32_t> targets(at(rows));
  for (auto& t : targets) t = static_cast<std::int32_t>(random() % static_cast<unsigned>(vocab));
  if (rows > 2) targets[1] = -1;
  return targets;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : kIsas) {
    if (isa <= best_isa()) isas.push_back(isa);
  }
  return isas;
}

// One problem in memory: the operands and all outputs, which start as NaN.
struct Problem {
  Problem(CpuStream& stream, DType dtype, std::int64_t rows, std::int64_t out, std::int64_t in,
          std::int64_t vocab_size)
      : h_values(random_values(rows * in, 1, 1.0F / 64)),
        w_values(random_values(out * in, 2, 1.0F / 256)),
        targets(random_targets(rows, vocab_size)),
        vocab(vocab_size) {
    Arena measure;
    layout(measure, stream.isa(), dtype, rows, out, in);
    memory = Buffer(measure.used(), "test");
    Arena arena(memory);
    layout(arena, stream.isa(), dtype, rows, out, in);
    for (std::int64_t i = 0; i < rows * in; ++i) {
      if (dtype == DType::kBF16) {
        h.data<bf16>()[i] = to_bf16(h_values[at(i)]);
      } else {
        h.data<float>()[i] = h_values[at(i)];
      }
    }
    std::copy(targets.begin(), targets.end(), target_view.data<std::int32_t>());
    std::vector<float> master = w_values;
    run(stream, PackWeight{&w, View(master.data(), DType::kF32, {out, in})});
    for (const View& view : {ce, lse, dh, dw}) {
      std::fill_n(view.data<float>(), view.size(), std::nanf(""));
    }
  }
  void layout(Arena& arena, Isa isa, DType dtype, std::int64_t rows, std::int64_t out,
              std::int64_t in) {
    w = PackedWeight(out, in, dtype, isa, PackedWeight::Use::kForwardAndBackward, arena);
    h = arena.take(dtype, {rows, in});
    target_view = arena.take(DType::kI32, {rows});
    ce = arena.take(DType::kF32, {rows});
    lse = arena.take(DType::kF32, {rows});
    argmax = arena.take(DType::kI32, {rows});
    dh = arena.take(DType::kF32, {rows, in});
    dw = arena.take(DType::kF32, {out, in});
  }
  [[nodiscard]] HeadLossForward forward() const {
    return {ce, lse, argmax, h, &w, target_view, vocab};
  }
  [[nodiscard]] HeadLossBackward backward(float z, float scale) const {
    return {.token_ce = ce,
            .token_lse = lse,
            .dh = dh,
            .dw = dw,
            .h = h,
            .w = &w,
            .targets = target_view,
            .vocab = vocab,
            .z_coefficient = z,
            .scale = scale};
  }

  std::vector<float> h_values, w_values;
  std::vector<std::int32_t> targets;
  std::int64_t vocab;
  Buffer memory;
  PackedWeight w;
  View h, target_view, ce, lse, argmax, dh, dw;
};

std::vector<float> values(const View& view) {
  return {view.data<float>(), view.data<float>() + view.size()};
}

void expect_near(const View& got, const std::vector<double>& want, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), static_cast<std::int64_t>(want.size()));
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got.data<float>()[i]), want[at(i)], tolerance)
        << what << " at " << i;
  }
}

TEST(HeadLoss, RefusesShapesVocabulariesAndTargets) {
  CpuStream stream(1);
  const Problem p(stream, DType::kF32, 3, 10, 4, 10);
  EXPECT_NO_THROW(p.forward().check());
  EXPECT_NO_THROW(p.backward(0, 1).check());
  auto too_wide = p.forward();
  too_wide.vocab = 11;
  EXPECT_THROW(too_wide.check(), Error);
  auto wrong_shape = p.backward(0, 1);
  wrong_shape.dw = p.dh;
  EXPECT_THROW(wrong_shape.check(), Error);
  p.target_view.data<std::int32_t>()[2] = 10;
  try {
    p.forward().check();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("targets: 10 at 2"), std::string::npos);
  }
  p.target_view.data<std::int32_t>()[2] = -1;
  EXPECT_NO_THROW(p.forward().check());
}

// Two tokens, h = (1, 0), logits (0, log 3): softmax (1/4, 3/4), lse = log 4.
TEST(HeadLoss, TinyCaseByHand) {
  for (const Isa isa : available_isas()) {
    CpuStream stream(1, isa);
    Problem p(stream, DType::kF32, 1, 2, 2, 2);
    p.h.data<float>()[0] = 1;
    p.h.data<float>()[1] = 0;
    std::vector<float> master = {0, 5, std::log(3.0F), 7};
    run(stream, PackWeight{&p.w, View(master.data(), DType::kF32, {2, 2})});
    p.target_view.data<std::int32_t>()[0] = 0;
    const double z = 0.125, lse = std::log(4.0), scale = 2;
    run(stream, p.backward(0.125F, 2));
    EXPECT_NEAR(p.ce.data<float>()[0], lse, 1e-6);
    EXPECT_NEAR(p.lse.data<float>()[0], lse, 1e-6);
    const double d0 = scale * ((1 + 2 * z * lse) * 0.25 - 1);
    const double d1 = scale * ((1 + 2 * z * lse) * 0.75);
    expect_near(p.dh, {d1 * std::log(3.0), d0 * 5 + d1 * 7}, 1e-5, "dh");
    expect_near(p.dw, {d0, 0, d1, 0}, 1e-6, "dw");
    run(stream, p.forward());
    EXPECT_NEAR(p.ce.data<float>()[0], lse, 1e-6);
    EXPECT_EQ(p.argmax.data<std::int32_t>()[0], 1);
  }
}

TEST(HeadLoss, ReferenceGradientMatchesComplexSteps) {
  const std::int64_t rows = 3, out = 6, in = 4, vocab = 5;
  const double z = 0.01, scale = 0.7;
  const auto h = wide(random_values(rows * in, 1, 1.0F / 64));
  const auto w = wide(random_values(out * in, 2, 1.0F / 64));
  const auto targets = random_targets(rows, vocab);
  const auto loss = ref::head_loss_forward(h, w, targets, out, in, vocab);
  const auto logits = ref::matmul_forward(h, w, rows, out, in);
  const auto d = ref::head_loss_dlogits(logits, targets, loss, out, vocab, z, scale);
  const auto total = [&](const std::vector<Complex>& hs, const std::vector<Complex>& ws) {
    const auto l = ref::head_loss_forward(hs, ws, targets, out, in, vocab);
    Complex sum{};
    for (std::size_t n = 0; n < targets.size(); ++n) {
      if (targets[n] >= 0) sum += scale * (l.ce[n] + z * l.lse[n] * l.lse[n]);
    }
    return sum.imag() / 1e-50;
  };
  const std::vector<Complex> hs(h.begin(), h.end());
  const std::vector<Complex> ws(w.begin(), w.end());
  const auto dh = ref::matmul_backward_input(d, w, rows, out, in);
  for (std::size_t i = 0; i < h.size(); ++i) {
    auto stepped = hs;
    stepped[i] += Complex(0, 1e-50);
    EXPECT_NEAR(dh[i], total(stepped, ws), 1e-12);
  }
  const auto dw = ref::matmul_backward_weight(d, h, rows, out, in);
  for (std::size_t i = 0; i < w.size(); ++i) {
    auto stepped = ws;
    stepped[i] += Complex(0, 1e-50);
    EXPECT_NEAR(dw[i], total(hs, stepped), 1e-12);
  }
}

struct Shape {
  std::int64_t rows, out, in, vocab;
};
// Vocabularies under, at and over one tile of 768 columns; rows around tiles of 64.
const std::vector<Shape> kShapes = {{1, 1, 1, 1},      {3, 7, 5, 7},         {9, 127, 31, 100},
                                    {65, 768, 8, 768}, {130, 1000, 65, 999}, {7, 2305, 16, 2305}};

// fp32: logits of size up to 2 sqrt(in) carry sqrt(in) roundings of that size; so does lse, and a
// gradient element is a sum of `rows` or `vocab` terms that each carry it.
double logit_tolerance(const Shape& s) {
  return 2 * static_cast<double>(s.in) * std::ldexp(1.0, -24) + 4e-7;
}

TEST(HeadLoss, MatchesTheReferenceOnEveryInstructionSet) {
  const double z = 1e-3, scale = 0.5;
  for (const Shape& s : kShapes) {
    for (const Isa isa : available_isas()) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        CpuStream stream(1, isa);
        const Problem p(stream, dtype, s.rows, s.out, s.in, s.vocab);
        const auto h = wide(p.h_values);
        const auto w = wide(p.w_values);
        const auto loss = ref::head_loss_forward(h, w, p.targets, s.out, s.in, s.vocab);
        const auto logits = ref::matmul_forward(h, w, s.rows, s.out, s.in);
        const auto d = ref::head_loss_dlogits(logits, p.targets, loss, s.out, s.vocab, z, scale);
        const std::string what =
            concat(name_of(isa), " ", name_of(dtype), " ", s.rows, "x", s.out, "x", s.in, " ");
        run(stream, p.forward());
        expect_near(p.ce, loss.ce, logit_tolerance(s), what + "forward ce");
        expect_near(p.lse, loss.lse, logit_tolerance(s), what + "forward lse");
        for (std::int64_t n = 0; n < s.rows; ++n) {
          const auto row = logits.begin() + n * s.out;
          const auto got = p.argmax.data<std::int32_t>()[n];
          EXPECT_NEAR(row[got], *std::max_element(row, row + s.vocab), logit_tolerance(s));
        }
        run(stream, p.backward(1e-3F, 0.5F));
        expect_near(p.ce, loss.ce, logit_tolerance(s), what + "ce");
        expect_near(p.lse, loss.lse, logit_tolerance(s), what + "lse");
        // Relative error of an element of dlogits: fp32 arithmetic, or bf16's 2^-9 and the kept
        // exponential's 2^-10. In a sum of products errors add like their absolute values' norm.
        const double relative =
            dtype == DType::kBF16 ? std::ldexp(1.5, -9) : 4 * logit_tolerance(s);
        // The softmax and the 1 that is taken from it carry their errors before they cancel.
        std::vector<double> magnitude(d.size());
        for (std::size_t i = 0; i < d.size(); ++i) {
          const bool here = p.targets[i / at(s.out)] == static_cast<std::int32_t>(i % at(s.out));
          magnitude[i] = std::abs(d[i]) + (here ? 2 * scale : 0);
        }
        double largest = 0;
        for (std::int64_t n = 0; n < s.rows; ++n) {
          double sum = 0;
          for (std::int64_t v = 0; v < s.out; ++v) sum += magnitude[at(n * s.out + v)];
          largest = std::max(largest, sum);
        }
        double tallest = 0;
        for (std::int64_t v = 0; v < s.out; ++v) {
          double sum = 0;
          for (std::int64_t n = 0; n < s.rows; ++n) sum += magnitude[at(n * s.out + v)];
          tallest = std::max(tallest, sum);
        }
        const auto dh = ref::matmul_backward_input(d, w, s.rows, s.out, s.in);
        const auto dw = ref::matmul_backward_weight(d, h, s.rows, s.out, s.in);
        expect_near(p.dh, dh, relative * largest * 0.5, what + "dh");  // |w| <= 1/2
        expect_near(p.dw, dw, relative * tallest * 2, what + "dw");    // |h| <= 2
      }
    }
  }
}

TEST(HeadLoss, BitsDoNotDependOnThreads) {
  for (const Isa isa : available_isas()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      std::vector<std::vector<float>> want;
      for (const int threads : {1, 2, 3}) {
        CpuStream stream(threads, isa);
        const Problem p(stream, dtype, 150, 2000, 33, 1990);
        run(stream, p.backward(1e-4F, 0.01F));
        const std::vector<std::vector<float>> got = {values(p.ce), values(p.lse), values(p.dh),
                                                     values(p.dw)};
        if (threads == 1) want = got;
        EXPECT_EQ(got, want);
      }
    }
  }
}

// With memory for 64 rows only, 150 rows go in three parts: what belongs to a row keeps its bits;
// dw is summed in parts, whose rounding differs by an fp32 unit of the partial sums.
TEST(HeadLoss, GoesInPartsWhenMemoryIsShort) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    CpuStream stream(2);
    const Problem whole(stream, dtype, 150, 900, 33, 890);
    const Problem parts(stream, dtype, 150, 900, 33, 890);
    run(stream, whole.backward(1e-4F, 1));
    auto op = parts.backward(1e-4F, 1);
    op.kept_bytes = 1;
    run(stream, op);
    EXPECT_EQ(values(parts.ce), values(whole.ce));
    EXPECT_EQ(values(parts.lse), values(whole.lse));
    EXPECT_EQ(values(parts.dh), values(whole.dh));
    const auto dw = values(whole.dw);
    // 150 roundings of sums below 2 * (hits of one target + 150 / 890 of mass) < 16
    expect_near(parts.dw, {dw.begin(), dw.end()}, 150 * std::ldexp(16.0, -24), "dw");
  }
}

// Whether the gradient of w comes in one part or three, it is added as a whole, with one rounding.
TEST(HeadLoss, AddsTheWholeGradientToWhatIsThere) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const std::int64_t kept_bytes : {std::int64_t{1}, std::int64_t{1} << 30}) {
      CpuStream stream(2);
      const Problem fresh(stream, dtype, 150, 900, 33, 890);
      const Problem added(stream, dtype, 150, 900, 33, 890);
      auto op = fresh.backward(1e-4F, 1);
      op.kept_bytes = kept_bytes;
      run(stream, op);
      const auto before = random_values(added.dw.size(), 8, 1.0F / 16);
      std::copy(before.begin(), before.end(), added.dw.data<float>());
      op.dw = added.dw;
      op.accumulate = Accumulate::kAdd;
      CpuStream other(2);
      run(other, op);
      EXPECT_EQ(other.scratch_bytes(), scratch_bytes(op, other.isa(), 2));
      for (std::int64_t i = 0; i < fresh.dw.size(); ++i) {
        ASSERT_EQ(added.dw.data<float>()[i], before[at(i)] + fresh.dw.data<float>()[i]) << i;
      }
    }
  }
}

TEST(HeadLoss, ForwardAndBackwardSeeTheSameLoss) {
  CpuStream stream(1);
  const Problem p(stream, DType::kBF16, 70, 900, 40, 890);
  run(stream, p.forward());
  const auto ce = values(p.ce);
  run(stream, p.backward(0, 1));
  EXPECT_EQ(values(p.ce), ce);
}

TEST(HeadLoss, ColumnsPastTheVocabularyHaveNoMassAndNoGradient) {
  CpuStream stream(1);
  const Problem p(stream, DType::kF32, 5, 100, 8, 60);
  run(stream, p.backward(0, 1));
  const auto dw = values(p.dw);
  for (std::size_t i = 60 * 8; i < dw.size(); ++i) ASSERT_EQ(dw[i], 0.0F);
  EXPECT_TRUE(std::all_of(dw.begin(), dw.end(), [](float x) { return std::isfinite(x); }));
}

TEST(HeadLoss, RowsWithoutATargetCountForNothing) {
  CpuStream stream(1);
  const Problem p(stream, DType::kBF16, 4, 50, 8, 50);
  std::fill_n(p.target_view.data<std::int32_t>(), 4, -1);
  run(stream, p.backward(1e-3F, 1));
  EXPECT_EQ(values(p.ce), std::vector<float>(4, 0.0F));
  EXPECT_EQ(values(p.dh), std::vector<float>(32, 0.0F));
  EXPECT_EQ(values(p.dw), std::vector<float>(400, 0.0F));
  EXPECT_TRUE(std::isfinite(p.lse.data<float>()[0]));
}

TEST(HeadLoss, ArgmaxIsTheLowestOfEqualLogits) {
  CpuStream stream(2);
  const Problem p(stream, DType::kF32, 2, 1800, 3, 1800);
  std::vector<float> master(1800 * 3, 0.0F);
  run(stream, PackWeight{&p.w, View(master.data(), DType::kF32, {1800, 3})});
  run(stream, p.forward());
  EXPECT_EQ(p.argmax.data<std::int32_t>()[0], 0);
  p.h.data<float>()[0] = 1;
  for (const std::int64_t v : {900, 901, 1700}) master[at(v * 3)] = 4;
  run(stream, PackWeight{&p.w, View(master.data(), DType::kF32, {1800, 3})});
  run(stream, p.forward());
  EXPECT_EQ(p.argmax.data<std::int32_t>()[0], 900);
}

TEST(HeadLoss, ANaNInARowMakesItsLossNaN) {
  CpuStream stream(1);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Problem p(stream, dtype, 3, 90, 4, 90);
    if (dtype == DType::kF32) {
      p.h.data<float>()[9] = std::nanf("");
    } else {
      p.h.data<bf16>()[9] = to_bf16(std::nanf(""));
    }
    run(stream, p.backward(0, 1));
    EXPECT_TRUE(std::isnan(p.ce.data<float>()[2]));
    EXPECT_TRUE(std::isfinite(p.ce.data<float>()[0]));
  }
}

// A loss near zero is not lost to cancellation: the target's logit leads by 10.
TEST(HeadLoss, SmallLossesKeepTheirDigits) {
  CpuStream stream(1);
  const Problem p(stream, DType::kF32, 1, 2, 1, 2);
  p.h.data<float>()[0] = 1;
  std::vector<float> master = {20, 10};
  run(stream, PackWeight{&p.w, View(master.data(), DType::kF32, {2, 1})});
  p.target_view.data<std::int32_t>()[0] = 0;
  run(stream, p.forward());
  // The tile's sum 1 + e^-10 is fp32: half a unit in its last place.
  EXPECT_NEAR(p.ce.data<float>()[0], std::log1p(std::exp(-10.0)), std::ldexp(1.0, -24));
}

}  // namespace
}  // namespace lockstep::ops
