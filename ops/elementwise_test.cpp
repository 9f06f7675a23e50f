#include "ops/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/run.h"
#include "ops/test_tensor.h"

namespace lockstep::ops {
namespace {

TEST(Elementwise, RefusesWrongShapesAndAliases) {
  const TestTensor a(DType::kF32, {8});
  const TestTensor b(DType::kF32, {7});
  const TestTensor c(DType::kBF16, {8});
  Add add{.y = a.view(), .a = a.view(), .b = a.view()};
  add.check();
  add.b = b.view();
  EXPECT_THROW(add.check(), Error);
  const Add overlapping{.y = a.view().slice(0, 0, 7), .a = a.view().slice(0, 1, 7), .b = b.view()};
  EXPECT_THROW(overlapping.check(), Error);
  Cast cast{.y = c.view(), .x = a.view()};
  cast.check();
  cast.x = b.view();
  EXPECT_THROW(cast.check(), Error);
  cast.x = c.view();
  EXPECT_THROW(cast.check(), Error);
  const SumOfSquares sum{.sum = nullptr, .x = a.view()};
  EXPECT_THROW(sum.check(), Error);
}

TEST(Add, IsExactOnEveryInstructionSetAndAnyThreads) {
  for (const std::int64_t n : {1, 7, 8, 9, 127, 40000}) {
    const TestTensor a(DType::kF32, {n}, random_values(n, "a"));
    const TestTensor b(DType::kF32, {n}, random_values(n, "b"));
    for_each_stream([&](CpuStream& stream) {
      const TestTensor y(DType::kF32, {n}, a.values());
      run(stream, Add{.y = y.view(), .a = y.view(), .b = b.view()});
      const auto got = y.values<float>();
      const auto x = a.values<float>();
      const auto z = b.values<float>();
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], x[i] + z[i]);
    });
  }
}

TEST(Cast, RoundsWidensAndCopiesAlsoStridedRows) {
  for (const DType to : {DType::kF32, DType::kBF16}) {
    for (const DType from : {DType::kF32, DType::kBF16}) {
      for (const std::int64_t gap : {0, 3}) {
        for (const std::int64_t width : {1, 7, 8, 9, 127, 20000}) {
          const TestTensor x(from, {2, 3, width}, random_values(6 * width, "x"), Gap{gap});
          for_each_stream([&](CpuStream& stream) {
            const TestTensor y(to, {2, 3, width}, Gap{2 * gap});
            run(stream, Cast{.y = y.view(), .x = x.view()});
            const auto got = y.values<float>();
            const auto want = x.values<float>();
            for (std::size_t i = 0; i < got.size(); ++i) {
              ASSERT_EQ(got[i], to == DType::kBF16 ? to_float(to_bf16(want[i])) : want[i]);
            }
            EXPECT_TRUE(y.intact());
          });
        }
      }
    }
  }
}

TEST(SumOfSquares, IsInDoublePrecisionWithTheSameBitsEverywhere) {
  for (const std::int64_t n : {1, 7, 8, 9, 127, 65536, 200001}) {
    const TestTensor x(DType::kF32, {n}, random_values(n, "x"));
    long double want = 0;
    for (const double value : x.values()) want += static_cast<long double>(value) * value;
    double first = -1;
    for_each_stream([&](CpuStream& stream) {
      double sum = 0;
      run(stream, SumOfSquares{.sum = &sum, .x = x.view()});
      if (first < 0) first = sum;
      EXPECT_EQ(sum, first);
      // 32 running sums over chunks of 65536: at most 2048 roundings of 2^-53 each.
      EXPECT_NEAR(sum, static_cast<double>(want), 2060 * std::ldexp(first, -53));
    });
  }
}

TEST(SumOfSquares, DoesNotOverflowWhereSinglePrecisionWouldAndShowsNonFiniteValues) {
  std::vector<double> values(100, 1e30);
  CpuStream stream(2);
  double sum = 0;
  const TestTensor large(DType::kF32, {100}, values);
  run(stream, SumOfSquares{.sum = &sum, .x = large.view()});
  EXPECT_NEAR(sum, 1e62, 1e55);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    values[99] = bad;
    const TestTensor x(DType::kF32, {100}, values);
    run(stream, SumOfSquares{.sum = &sum, .x = x.view()});
    EXPECT_FALSE(std::isfinite(sum));
  }
}

}  // namespace
}  // namespace lockstep::ops
