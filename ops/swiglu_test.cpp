#include "ops/swiglu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/ref/swiglu.h"
#include "ops/run.h"
#include "ops/test_tensor.h"

namespace lockstep::ops {
namespace {

TEST(SwiGlu, RefusesWrongShapesTypesAndAliases) {
  const TestTensor y(DType::kF32, {2, 4});
  const TestTensor gate_up(DType::kF32, {2, 8});
  const TestTensor narrow(DType::kF32, {2, 7});
  const TestTensor rounded(DType::kBF16, {2, 8});
  SwiGluForward op{.y = y.view(), .gate_up = gate_up.view()};
  op.check();
  op.gate_up = narrow.view();
  EXPECT_THROW(op.check(), Error);
  op.gate_up = rounded.view();
  EXPECT_THROW(op.check(), Error);
  SwiGluBackward back{.dgate_up = gate_up.view(), .dy = y.view(), .gate_up = gate_up.view()};
  back.check();  // in place
  back.dy = gate_up.view().reshape({4, 4}).slice(0, 0, 2);
  try {
    back.check();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBug);
    EXPECT_STREQ(error.what(),
                 "[swiglu_backward] dgate_up: f32 [2, 8] shares memory with dy: f32 [2, 4], want "
                 "them apart");
  }
}

TEST(SwiGlu, ByHand) {
  // silu(0) = 0; silu(ln 3) = ln 3 * 3/4; a very negative gate closes.
  const TestTensor gate_up(DType::kF32, {1, 6}, {0, std::log(3.0), -200, 5, 4, 7});
  const TestTensor y(DType::kF32, {1, 3});
  CpuStream stream(1);
  run(stream, SwiGluForward{.y = y.view(), .gate_up = gate_up.view()});
  EXPECT_EQ(y.values()[0], 0);
  EXPECT_NEAR(y.values()[1], 3 * std::log(3.0), 1e-6);
  EXPECT_EQ(y.values()[2], 0);
}

TEST(SwiGlu, RefBackwardIsTheComplexStepDerivative) {
  constexpr std::size_t kWidth = 5;
  const auto gate_up = to_complex(random_values(2 * 2 * kWidth, "gate_up", 2));
  const auto dy = to_complex(random_values(2 * kWidth, "dy"));
  const auto grads = ref::swiglu_backward(dy, gate_up, kWidth);
  for (std::size_t i = 0; i < gate_up.size(); ++i) {
    const double want = complex_step(
        [&](const std::vector<Complex>& at) {
          const auto y = ref::swiglu_forward(at, kWidth);
          Complex sum = 0;
          for (std::size_t j = 0; j < y.size(); ++j) sum += dy[j] * y[j];
          return sum;
        },
        gate_up, i);
    EXPECT_NEAR(grads[i].real(), want, 1e-12);
  }
}

// A sigmoid is within 4 units of 2^-23, products add half a unit each; 1 + g (1 - s) cancels where
// g is about -1.3, which costs its terms' size, at most |g| (bounded here by 8).
void compare_with_ref(std::int64_t rows, std::int64_t width, DType dtype) {
  const TestTensor gate_up(dtype, {rows, 2 * width}, random_values(rows * 2 * width, "gu", 2));
  const TestTensor dy(dtype, {rows, width}, random_values(rows * width, "dy"));
  const auto want_y = ref::swiglu_forward(gate_up.values(), static_cast<std::size_t>(width));
  const auto want_d =
      ref::swiglu_backward(dy.values(), gate_up.values(), static_cast<std::size_t>(width));
  const double store = dtype == DType::kBF16 ? std::ldexp(1.0, -8) : 0;
  const double unit = 8 * std::ldexp(1.0, -23);
  std::vector<std::vector<unsigned char>> first;
  for_each_stream([&](CpuStream& stream) {
    const TestTensor y(dtype, {rows, width});
    const TestTensor d(dtype, {rows, 2 * width});
    run(stream, SwiGluForward{.y = y.view(), .gate_up = gate_up.view()});
    run(stream, SwiGluBackward{.dgate_up = d.view(), .dy = dy.view(), .gate_up = gate_up.view()});
    const std::vector<std::vector<unsigned char>> bits = {y.bytes(), d.bytes()};
    if (first.empty()) {
      first = bits;
      const auto got_y = y.values();
      const auto got_d = d.values();
      for (std::size_t i = 0; i < got_y.size(); ++i) {
        ASSERT_NEAR(got_y[i], want_y[i], (unit + store) * std::abs(want_y[i])) << i;
      }
      for (std::size_t i = 0; i < got_d.size(); ++i) {
        ASSERT_NEAR(got_d[i], want_d[i], (unit + store) * std::abs(want_d[i]) + unit * 4 * 8 * 8)
            << i;
      }
    }
    EXPECT_EQ(bits, first) << name_of(stream.isa()) << ", " << stream.pool().threads()
                           << " threads";
    const TestTensor in_place(dtype, {rows, 2 * width}, gate_up.values());
    run(stream,
        SwiGluBackward{.dgate_up = in_place.view(), .dy = dy.view(), .gate_up = in_place.view()});
    EXPECT_EQ(in_place.bytes(), first[1]);
  });
}

TEST(SwiGlu, MatchesRefWithTheSameBitsOnEveryInstructionSetAndAnyThreads) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const std::int64_t width : {1, 7, 8, 9, 127}) compare_with_ref(3, width, dtype);
    compare_with_ref(40, 1024, dtype);
  }
}

}  // namespace
}  // namespace lockstep::ops
