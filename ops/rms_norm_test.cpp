#include "ops/rms_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/ref/norm.h"
#include "ops/run.h"
#include "ops/test_tensor.h"

namespace lockstep::ops {
namespace {

constexpr double kEps = 1e-6;

std::vector<double> weights(std::int64_t d) {
  std::vector<double> w = random_values(d, "weight", 0.3);
  for (double& value : w) value += 1;
  return w;
}

double largest(const std::vector<double>& x) {
  double most = 0;
  for (const double value : x) most = std::max(most, std::abs(value));
  return most;
}

// A row's sum is 4 x 16 running sums and a tree of 6 levels: D / 64 + 6 roundings; a handful more
// for the products and the root.
double fp32_error(std::int64_t d) {
  return std::ldexp(1.0, -24) * (static_cast<double>(d) / 64 + 16);
}
// Half a unit of the last of 8 bits.
double store_error(DType dtype) { return dtype == DType::kBF16 ? std::ldexp(1.0, -8) : 0; }

void expect_near_all(const std::vector<double>& got, const std::vector<double>& want,
                     double relative, double absolute, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], relative * std::abs(want[i]) + absolute) << what << " at " << i;
  }
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBug);
    return error.what();
  }
  return "no error";
}

TEST(RmsNorm, RefusesWrongShapesTypesAndAliases) {
  const TestTensor x(DType::kF32, {2, 4});
  const TestTensor y(DType::kF32, {2, 4});
  const TestTensor narrow(DType::kF32, {2, 3});
  const TestTensor rstd(DType::kF32, {2});
  const TestTensor w(DType::kF32, {4});
  const TestTensor w16(DType::kBF16, {4});
  const RmsNormForward good{
      .y = y.view(), .rstd = rstd.view(), .x = x.view(), .weight = w.view(), .eps = 1e-6F};
  good.check();
  RmsNormForward op = good;
  op.y = narrow.view();
  EXPECT_EQ(message_of([&] { op.check(); }),
            "[rms_norm_forward] y: f32 [2, 3], want f32 or bf16 [2, 4]");
  op = good;
  op.weight = w16.view();
  EXPECT_EQ(message_of([&] { op.check(); }), "[rms_norm_forward] weight: bf16 [4], want f32 [4]");
  op = good;
  op.y = x.view();
  EXPECT_EQ(message_of([&] { op.check(); }),
            "[rms_norm_forward] y: f32 [2, 4] shares memory with x: f32 [2, 4], want them apart");
  op = good;
  op.rstd = View();
  EXPECT_EQ(message_of([&] { op.check(); }), "[rms_norm_forward] rstd: absent, want f32 [2]");

  const RmsNormBackward back{.dx = y.view(),
                             .dweight = w.view(),
                             .dy = y.view(),
                             .x = x.view(),
                             .rstd = rstd.view(),
                             .weight = w.view()};
  back.check();  // dx may be dy
  RmsNormBackward bad = back;
  bad.dx = x.view();
  EXPECT_NE(message_of([&] { bad.check(); }).find("[rms_norm_backward] dx"), std::string::npos);

  const TestTensor h16(DType::kBF16, {2, 4});
  const NormResidualForward residual{.h = x.view(),
                                     .h_rounded = h16.view(),
                                     .rstd = rstd.view(),
                                     .a = y.view(),
                                     .x = x.view(),
                                     .weight = w.view(),
                                     .eps = 1e-6F};
  residual.check();  // h may be x
  NormResidualForward wrong = residual;
  wrong.h_rounded = y.view();
  EXPECT_EQ(message_of([&] { wrong.check(); }),
            "[norm_residual_forward] h_rounded: f32 [2, 4], want bf16 [2, 4]");
}

TEST(RmsNorm, TwoNumbersByHand) {
  // mean of 3^2 and 4^2 is 12.5; eps 3.5 makes the root 4.
  const TestTensor x(DType::kF32, {1, 2}, {3, 4});
  const TestTensor w(DType::kF32, {2}, {2, 10});
  const TestTensor y(DType::kF32, {1, 2});
  const TestTensor rstd(DType::kF32, {1});
  CpuStream stream(1);
  run(stream,
      RmsNormForward{
          .y = y.view(), .rstd = rstd.view(), .x = x.view(), .weight = w.view(), .eps = 3.5F});
  EXPECT_EQ(rstd.values(), (std::vector<double>{0.25}));
  EXPECT_EQ(y.values(), (std::vector<double>{1.5, 10}));
}

TEST(RmsNorm, RefBackwardIsTheComplexStepDerivative) {
  constexpr std::int64_t kRows = 3;
  constexpr std::int64_t kWidth = 7;
  const auto x = to_complex(random_values(kRows * kWidth, "x"));
  const auto w = to_complex(weights(kWidth));
  const auto dy = to_complex(random_values(kRows * kWidth, "dy"));
  const auto loss = [&](const std::vector<Complex>& at_x, const std::vector<Complex>& at_w) {
    const auto out = ref::rms_norm_forward(at_x, at_w, kEps);
    Complex sum = 0;
    for (std::size_t i = 0; i < dy.size(); ++i) sum += dy[i] * out.y[i];
    return sum;
  };
  const auto grads = ref::rms_norm_backward(dy, x, ref::rms_norm_forward(x, w, kEps).rstd, w);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = complex_step([&](const auto& at) { return loss(at, w); }, x, i);
    EXPECT_NEAR(grads.dx[i].real(), want, 1e-12);
  }
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double want = complex_step([&](const auto& at) { return loss(x, at); }, w, i);
    EXPECT_NEAR(grads.dweight[i].real(), want, 1e-12);
  }
}

struct Case {
  std::int64_t rows;
  std::int64_t width;
  DType y;  // also of dx
  DType x;
  DType dy;
};

std::vector<Case> cases() {
  constexpr DType f = DType::kF32;
  constexpr DType b = DType::kBF16;
  std::vector<Case> list;
  for (const std::int64_t width : {1, 7, 8, 9, 127}) {
    list.push_back({5, width, f, f, f});
    list.push_back({5, width, b, b, b});
  }
  for (const DType y : {f, b}) {
    for (const DType x : {f, b}) {
      for (const DType dy : {f, b}) list.push_back({67, 256, y, x, dy});
    }
  }
  list.push_back({300, 768, b, b, f});
  return list;
}

void compare_with_ref(const Case& c) {
  const std::int64_t size = c.rows * c.width;
  const TestTensor x(c.x, {c.rows, c.width}, random_values(size, "x"), Gap{5});
  const TestTensor w(DType::kF32, {c.width}, weights(c.width));
  const TestTensor dy(c.dy, {c.rows, c.width}, random_values(size, "dy"));
  const auto want = ref::rms_norm_forward(x.values(), w.values(), kEps);
  std::vector<std::vector<unsigned char>> first;
  for_each_stream([&](CpuStream& stream) {
    const TestTensor y(c.y, {c.rows, c.width});
    const TestTensor rstd(DType::kF32, {c.rows});
    run(stream,
        RmsNormForward{.y = y.view(), .rstd = rstd.view(), .x = x.view(), .weight = w.view()});
    const TestTensor dx(c.y, {c.rows, c.width});
    const TestTensor dw(DType::kF32, {c.width});
    run(stream, RmsNormBackward{.dx = dx.view(),
                                .dweight = dw.view(),
                                .dy = dy.view(),
                                .x = x.view(),
                                .rstd = rstd.view(),
                                .weight = w.view()});
    const std::vector<std::vector<unsigned char>> bits = {y.bytes(), rstd.bytes(), dx.bytes(),
                                                          dw.bytes()};
    if (first.empty()) {
      first = bits;
      const double error = fp32_error(c.width);
      expect_near_all(y.values(), want.y, error + store_error(c.y), 0, "y");
      expect_near_all(rstd.values(), want.rstd, error, 0, "rstd");
      const auto grads = ref::rms_norm_backward(dy.values(), x.values(), rstd.values(), w.values());
      const double term = largest(w.values()) * largest(dy.values()) * largest(rstd.values());
      expect_near_all(dx.values(), grads.dx, store_error(c.y), 2 * error * term, "dx");
      // The rows of a chunk one after another, then the chunks.
      const double rows_error = std::ldexp(1.0, -24) * (static_cast<double>(c.rows) + 4);
      expect_near_all(dw.values(), grads.dweight, 0,
                      rows_error * largest(dy.values()) * 4 * std::sqrt(c.rows), "dweight");
    }
    EXPECT_EQ(bits, first) << name_of(stream.isa()) << ", " << stream.pool().threads()
                           << " threads";
    EXPECT_TRUE(x.intact());
  });
}

TEST(RmsNorm, MatchesRefWithTheSameBitsOnEveryInstructionSetAndAnyThreads) {
  for (const Case& c : cases()) compare_with_ref(c);
}

TEST(RmsNorm, ARowDoesNotDependOnTheOthers) {
  const TestTensor x(DType::kBF16, {200, 96}, random_values(200 * 96, "x"));
  const TestTensor w(DType::kF32, {96}, weights(96));
  const TestTensor y(DType::kBF16, {200, 96});
  const TestTensor rstd(DType::kF32, {200});
  CpuStream stream(2);
  run(stream,
      RmsNormForward{.y = y.view(), .rstd = rstd.view(), .x = x.view(), .weight = w.view()});
  const TestTensor alone(DType::kBF16, {1, 96});
  const TestTensor alone_rstd(DType::kF32, {1});
  run(stream, RmsNormForward{.y = alone.view(),
                             .rstd = alone_rstd.view(),
                             .x = x.view().slice(0, 173, 1),
                             .weight = w.view()});
  const auto all = y.values();
  EXPECT_EQ(alone.values(), std::vector<double>(all.begin() + 173 * 96, all.begin() + 174 * 96));
}

// A backward pass of a few chunks of rows.
struct Backward {
  TestTensor x{DType::kF32, {333, 40}, random_values(333 * 40, "x")};
  TestTensor w{DType::kF32, {40}, weights(40)};
  TestTensor rstd{DType::kF32, {333}, std::vector<double>(333, 0.5)};
  TestTensor dy{DType::kF32, {333, 40}, random_values(333 * 40, "dy")};
  TestTensor dx{DType::kF32, {333, 40}};
  TestTensor dw{DType::kF32, {40}};
  RmsNormBackward op{.dx = dx.view(),
                     .dweight = dw.view(),
                     .dy = dy.view(),
                     .x = x.view(),
                     .rstd = rstd.view(),
                     .weight = w.view()};
};

TEST(RmsNorm, BackwardInPlaceGivesTheSame) {
  Backward pass;
  CpuStream stream(2);
  run(stream, pass.op);
  pass.op.dx = pass.dy.view();
  run(stream, pass.op);
  EXPECT_EQ(pass.dy.bytes(), pass.dx.bytes());
}

TEST(RmsNorm, AddsTheGainsGradientToWhatIsThere) {
  Backward pass;
  const TestTensor added(DType::kF32, {40}, random_values(40, "before"));
  auto want = added.values<float>();
  CpuStream stream(2);
  run(stream, pass.op);
  const auto sum = pass.dw.values<float>();
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += sum[i];
  pass.op.dweight = added.view();
  pass.op.accumulate = Accumulate::kAdd;
  run(stream, pass.op);
  EXPECT_EQ(added.values<float>(), want);
}

TEST(NormResidual, IsTheNormPlusTheStreamInBothRoundings) {
  for (const DType a_type : {DType::kF32, DType::kBF16}) {
    for (const std::int64_t width : {1, 9, 127, 768}) {
      constexpr std::int64_t kRows = 50;
      const TestTensor a(a_type, {kRows, width}, random_values(kRows * width, "a"));
      const TestTensor x(DType::kF32, {kRows, width}, random_values(kRows * width, "x", 3));
      const TestTensor w(DType::kF32, {width}, weights(width));
      const auto normed = ref::rms_norm_forward(a.values(), w.values(), kEps);
      std::vector<unsigned char> first;
      for_each_stream([&](CpuStream& stream) {
        const TestTensor h(DType::kF32, {kRows, width});
        const TestTensor rounded(DType::kBF16, {kRows, width});
        const TestTensor rstd(DType::kF32, {kRows});
        NormResidualForward op{.h = h.view(),
                               .h_rounded = rounded.view(),
                               .rstd = rstd.view(),
                               .a = a.view(),
                               .x = x.view(),
                               .weight = w.view()};
        run(stream, op);
        if (first.empty()) first = h.bytes();
        EXPECT_EQ(h.bytes(), first);
        const auto got = h.values();
        const auto got_rounded = rounded.values();
        const auto stream_in = x.values();
        for (std::size_t i = 0; i < got.size(); ++i) {
          const double want = stream_in[i] + normed.y[i];
          const double size = std::abs(stream_in[i]) + std::abs(normed.y[i]);
          ASSERT_NEAR(got[i], want, fp32_error(width) * size);
          ASSERT_EQ(got_rounded[i],
                    static_cast<double>(to_float(to_bf16(static_cast<float>(got[i])))));
        }
        // fp32 mode, in place.
        const TestTensor in_place(DType::kF32, {kRows, width}, stream_in);
        op.h = in_place.view();
        op.x = in_place.view();
        op.h_rounded = View();
        run(stream, op);
        EXPECT_EQ(in_place.bytes(), first);
      });
    }
  }
}

}  // namespace
}  // namespace lockstep::ops
