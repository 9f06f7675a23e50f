#include "ops/qk_norm_rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/ref/norm.h"
#include "ops/run.h"
#include "ops/test_tensor.h"

namespace lockstep::ops {
namespace {

constexpr double kEps = 1e-6;

struct Case {
  std::int64_t batch;
  std::int64_t positions;
  std::int64_t heads;
  std::int64_t half;
  std::int64_t first;
  DType y;
  DType x;
  [[nodiscard]] std::int64_t width() const { return heads * 2 * half; }
  [[nodiscard]] std::int64_t rows() const { return batch * positions; }
  [[nodiscard]] std::int64_t table() const { return first + positions + 2; }
  [[nodiscard]] std::vector<std::size_t> row_positions() const {
    std::vector<std::size_t> list;
    for (std::int64_t row = 0; row < rows(); ++row) {
      list.push_back(static_cast<std::size_t>(first + row % positions));
    }
    return list;
  }
};

// Angles like RoPE's, scaled by a factor as YaRN's tables are.
std::vector<double> angles(const Case& c, double (*f)(double)) {
  std::vector<double> out;
  for (std::int64_t p = 0; p < c.table(); ++p) {
    for (std::int64_t i = 0; i < c.half; ++i) {
      const double exponent = static_cast<double>(i) / static_cast<double>(c.half);
      out.push_back(1.2 * f(static_cast<double>(p) / std::pow(10000.0, exponent)));
    }
  }
  return out;
}
double cosine(double x) { return std::cos(x); }
double sine(double x) { return std::sin(x); }

std::vector<double> weights(std::int64_t d) {
  std::vector<double> w = random_values(d, "weight", 0.3);
  for (double& value : w) value += 1;
  return w;
}

TEST(QkNormRope, RefusesTablesThatDoNotReachAndBrokenHeads) {
  const TestTensor x(DType::kF32, {1, 3, 8});
  const TestTensor y(DType::kF32, {1, 3, 8});
  const TestTensor rstd(DType::kF32, {3});
  const TestTensor w(DType::kF32, {8});
  const TestTensor table(DType::kF32, {4, 2});
  const TestTensor odd_table(DType::kF32, {4, 3});
  QkNormRopeForward op{.y = y.view(),
                       .rstd = rstd.view(),
                       .x = x.view(),
                       .weight = w.view(),
                       .cos = table.view(),
                       .sin = table.view(),
                       .first_position = 1};
  op.check();
  op.first_position = 2;
  try {
    op.check();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBug);
    EXPECT_STREQ(error.what(), "[qk_norm_rope_forward] cos: f32 [4, 2], want positions 2 to 4");
  }
  op.first_position = 0;
  op.cos = odd_table.view();
  op.sin = odd_table.view();
  EXPECT_THROW(op.check(), Error);
  op.cos = table.view();
  EXPECT_THROW(op.check(), Error);
  op.sin = table.view();
  op.y = x.view();
  EXPECT_THROW(op.check(), Error);
}

TEST(QkNormRope, QuarterTurnByHand) {
  // One head of two dims turned by 90 degrees: (a, b) becomes (-b, a); rstd = 1/2, weight 2 and 4.
  const TestTensor x(DType::kF32, {1, 1, 2}, {1, 1});
  const TestTensor w(DType::kF32, {2}, {2, 4});
  const TestTensor cos(DType::kF32, {1, 1}, std::vector<double>{0});
  const TestTensor sin(DType::kF32, {1, 1}, std::vector<double>{1});
  const TestTensor y(DType::kF32, {1, 1, 2});
  const TestTensor rstd(DType::kF32, {1});
  CpuStream stream(1);
  run(stream, QkNormRopeForward{.y = y.view(),
                                .rstd = rstd.view(),
                                .x = x.view(),
                                .weight = w.view(),
                                .cos = cos.view(),
                                .sin = sin.view(),
                                .eps = 3});
  EXPECT_EQ(y.values(), (std::vector<double>{-2, 1}));
}

TEST(QkNormRope, RefBackwardIsTheComplexStepDerivative) {
  const Case c{2, 3, 2, 3, 4, DType::kF32, DType::kF32};
  const auto cos = angles(c, cosine);
  const auto sin = angles(c, sine);
  const auto d = static_cast<std::size_t>(c.width());
  const auto half = static_cast<std::size_t>(c.half);
  const auto x = to_complex(random_values(c.rows() * c.width(), "x"));
  const auto w = to_complex(weights(c.width()));
  const auto dy = to_complex(random_values(c.rows() * c.width(), "dy"));
  const auto loss = [&](const std::vector<Complex>& at_x, const std::vector<Complex>& at_w) {
    const auto z = ref::rms_norm_forward(at_x, at_w, kEps).y;
    const auto y = ref::rotate(z, d, cos, sin, half, c.row_positions(), 1);
    Complex sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
    return sum;
  };
  const auto dz = ref::rotate(dy, d, cos, sin, half, c.row_positions(), -1);
  const auto grads = ref::rms_norm_backward(dz, x, ref::rms_norm_forward(x, w, kEps).rstd, w);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = complex_step([&](const auto& at) { return loss(at, w); }, x, i);
    EXPECT_NEAR(grads.dx[i].real(), want, 1e-12);
  }
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double want = complex_step([&](const auto& at) { return loss(x, at); }, w, i);
    EXPECT_NEAR(grads.dweight[i].real(), want, 1e-12);
  }
}

void expect_near_all(const std::vector<double>& got, const std::vector<double>& want,
                     double relative, double absolute, const char* what) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], relative * std::abs(want[i]) + absolute) << what << " at " << i;
  }
}

// Errors in units of 2^-24 relative to the largest terms: inputs are below 4 standard deviations,
// weights below 2.2, tables 1.2, rstd about 1; a row's sum has up to D / 32 + 6 roundings.
void compare_with_ref(const Case& c) {
  const std::int64_t size = c.rows() * c.width();
  const std::int64_t b = c.batch;
  const std::int64_t t = c.positions;
  const TestTensor x(c.x, {b, t, c.width()}, random_values(size, "x"), Gap{12});
  const TestTensor dy(c.y, {b, t, c.width()}, random_values(size, "dy"), Gap{3});
  const TestTensor w(DType::kF32, {c.width()}, weights(c.width()));
  const TestTensor cos(DType::kF32, {c.table(), c.half}, angles(c, cosine));
  const TestTensor sin(DType::kF32, {c.table(), c.half}, angles(c, sine));
  const auto d = static_cast<std::size_t>(c.width());
  const auto half = static_cast<std::size_t>(c.half);
  const auto want = ref::rms_norm_forward(x.values(), w.values(), kEps);
  const auto want_y =
      ref::rotate(want.y, d, cos.values(), sin.values(), half, c.row_positions(), 1);
  const auto dz =
      ref::rotate(dy.values(), d, cos.values(), sin.values(), half, c.row_positions(), -1);
  const auto grads = ref::rms_norm_backward(dz, x.values(), want.rstd, w.values());
  double rstd_most = 0;
  for (const double r : want.rstd) rstd_most = std::max(rstd_most, r);
  const double unit = std::ldexp(1.0, -24) * (static_cast<double>(d) / 32 + 16) * rstd_most;
  const double store = c.y == DType::kBF16 ? std::ldexp(1.0, -8) : 0;

  std::vector<std::vector<unsigned char>> first;
  for_each_stream([&](CpuStream& stream) {
    const TestTensor y(c.y, {b, t, c.width()}, Gap{20});
    const TestTensor rstd(DType::kF32, {c.rows()});
    const TestTensor dx(c.x, {b, t, c.width()}, Gap{7});
    const TestTensor dw(DType::kF32, {c.width()});
    run(stream, QkNormRopeForward{.y = y.view(),
                                  .rstd = rstd.view(),
                                  .x = x.view(),
                                  .weight = w.view(),
                                  .cos = cos.view(),
                                  .sin = sin.view(),
                                  .first_position = c.first});
    run(stream, QkNormRopeBackward{.dx = dx.view(),
                                   .dweight = dw.view(),
                                   .dy = dy.view(),
                                   .x = x.view(),
                                   .rstd = rstd.view(),
                                   .weight = w.view(),
                                   .cos = cos.view(),
                                   .sin = sin.view(),
                                   .first_position = c.first});
    const std::vector<std::vector<unsigned char>> bits = {y.bytes(), rstd.bytes(), dx.bytes(),
                                                          dw.bytes()};
    if (first.empty()) {
      first = bits;
      expect_near_all(y.values(), want_y, store, unit * 4 * 2.2 * 2.4, "y");
      const double dx_store = c.x == DType::kBF16 ? std::ldexp(1.0, -8) : 0;
      expect_near_all(dx.values(), grads.dx, dx_store, 2 * unit * 4 * 2.4 * 2.2, "dx");
      expect_near_all(dw.values(), grads.dweight, 0,
                      unit * 4 * 2.4 * 4 * std::sqrt(static_cast<double>(c.rows())), "dweight");
    }
    EXPECT_EQ(bits, first) << name_of(stream.isa()) << ", " << stream.pool().threads()
                           << " threads";
    EXPECT_TRUE(y.intact() && dx.intact());
  });
}

TEST(QkNormRope, MatchesRefWithTheSameBitsOnEveryInstructionSetAndAnyThreads) {
  for (const DType y : {DType::kF32, DType::kBF16}) {
    for (const DType x : {DType::kF32, DType::kBF16}) {
      compare_with_ref({1, 1, 1, 1, 0, y, x});
      compare_with_ref({2, 5, 3, 7, 3, y, x});
      compare_with_ref({2, 9, 2, 12, 0, y, x});
      compare_with_ref({1, 127, 1, 64, 11, y, x});
    }
  }
  compare_with_ref({2, 65, 12, 32, 0, DType::kBF16, DType::kBF16});
}

TEST(QkNormRope, TakesColumnSlicesOfOneMatrixAndWorksInPlace) {
  // q, k and v side by side, as a fused projection leaves them; dx over dy.
  const Case c{2, 9, 2, 16, 0, DType::kF32, DType::kF32};
  const std::int64_t d = c.width();
  const TestTensor qkv(DType::kF32, {2, 9, 3 * d}, random_values(c.rows() * 3 * d, "qkv"));
  const TestTensor cos(DType::kF32, {c.table(), c.half}, angles(c, cosine));
  const TestTensor sin(DType::kF32, {c.table(), c.half}, angles(c, sine));
  const TestTensor w(DType::kF32, {d}, weights(d));
  const TestTensor rstd(DType::kF32, {c.rows()}, std::vector<double>(18, 0.7));
  const TestTensor dw(DType::kF32, {d});
  const TestTensor dx(DType::kF32, {2, 9, d});
  CpuStream stream(2);
  QkNormRopeBackward op{.dx = dx.view(),
                        .dweight = dw.view(),
                        .dy = qkv.view().slice(2, 0, d),
                        .x = qkv.view().slice(2, d, d),
                        .rstd = rstd.view(),
                        .weight = w.view(),
                        .cos = cos.view(),
                        .sin = sin.view()};
  run(stream, op);
  const auto want = dx.values();
  // The gain's gradient, complete, is added to what is there.
  const TestTensor added(DType::kF32, {d}, random_values(d, "before"));
  auto want_sum = added.values<float>();
  for (std::size_t i = 0; i < want_sum.size(); ++i) want_sum[i] += dw.values<float>()[i];
  op.dweight = added.view();
  op.accumulate = Accumulate::kAdd;
  run(stream, op);
  EXPECT_EQ(added.values<float>(), want_sum);
  op.dx = op.dy;
  run(stream, op);
  const auto all = qkv.values();
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(all[i / static_cast<std::size_t>(d) * static_cast<std::size_t>(3 * d) +
                  i % static_cast<std::size_t>(d)],
              want[i]);
  }
  op.dx = qkv.view().slice(2, d - 1, d);
  EXPECT_THROW(op.check(), Error);
}

TEST(QkNormRope, APositionDoesNotDependOnWhereTheSequenceBegins) {
  const Case c{1, 20, 2, 16, 0, DType::kBF16, DType::kBF16};
  const TestTensor x(c.x, {1, 20, c.width()}, random_values(20 * c.width(), "x"));
  const TestTensor w(DType::kF32, {c.width()}, weights(c.width()));
  const TestTensor cos(DType::kF32, {c.table(), c.half}, angles(c, cosine));
  const TestTensor sin(DType::kF32, {c.table(), c.half}, angles(c, sine));
  const TestTensor all(c.y, {1, 20, c.width()});
  const TestTensor one(c.y, {1, 1, c.width()});
  const TestTensor rstd(DType::kF32, {20});
  CpuStream stream(2);
  QkNormRopeForward op{.y = all.view(),
                       .rstd = rstd.view(),
                       .x = x.view(),
                       .weight = w.view(),
                       .cos = cos.view(),
                       .sin = sin.view()};
  run(stream, op);
  op.y = one.view();
  op.rstd = rstd.view().slice(0, 0, 1);
  op.x = x.view().slice(1, 13, 1);
  op.first_position = 13;
  run(stream, op);
  const auto values = all.values();
  EXPECT_EQ(one.values(),
            std::vector<double>(values.begin() + 13 * c.width(), values.begin() + 14 * c.width()));
}

}  // namespace
}  // namespace lockstep::ops
