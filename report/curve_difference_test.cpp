#include "report/curve_difference.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

CurvePoint point(std::int64_t step, double loss, const std::string& digest = "") {
  CurvePoint result;
  result.step = step;
  result.loss = loss;
  result.ce_loss = std::nan("");
  result.batch_digest = digest;
  return result;
}

TEST(CurveDifference, OfTwoHandMadeCurves) {
  const std::vector<CurvePoint> a = {point(1, 5), point(2, 4.5), point(3, 4), point(60, 3)};
  const std::vector<CurvePoint> b = {point(2, 4), point(3, 4), point(4, 4), point(60, 5)};
  const CurveDifference result = compare_curves(a, b, 2);
  EXPECT_EQ(result.common_steps, 3);
  EXPECT_EQ(result.only_a, 1);
  EXPECT_EQ(result.only_b, 1);
  EXPECT_DOUBLE_EQ(result.mean, -0.5);  // of 0.5, 0, -2
  EXPECT_DOUBLE_EQ(result.spread, std::sqrt((1.0 + 0.25 + 2.25) / 2));
  EXPECT_EQ(result.max_abs, 2);
  EXPECT_EQ(result.max_abs_step, 60);
  EXPECT_EQ(result.first_steps, 2);
  EXPECT_EQ(result.first_max_abs, 0.5);
  EXPECT_EQ(result.window, 2);
  EXPECT_DOUBLE_EQ(result.worst_mean, -1);
  EXPECT_EQ(result.worst_first, 3);
  EXPECT_EQ(result.worst_last, 60);
  EXPECT_DOUBLE_EQ(result.last_a, 3.5);
  EXPECT_DOUBLE_EQ(result.last_b, 4.5);
}

TEST(CurveDifference, EqualCurvesAndShortOnes) {
  const std::vector<CurvePoint> a = {point(1, 5), point(2, 4)};
  const CurveDifference same = compare_curves(a, a, 50);
  EXPECT_EQ(same.mean, 0);
  EXPECT_EQ(same.spread, 0);
  EXPECT_EQ(same.max_abs, 0);
  EXPECT_EQ(same.max_abs_step, 1);
  EXPECT_EQ(same.window, 2);
  const CurveDifference one = compare_curves(std::span(a).first(1), a, 50);
  EXPECT_EQ(one.common_steps, 1);
  EXPECT_EQ(one.spread, 0);
  const CurveDifference none = compare_curves({}, a, 50);
  EXPECT_EQ(none.common_steps, 0);
  EXPECT_EQ(none.only_b, 2);
  EXPECT_TRUE(std::isnan(none.mean) && std::isnan(none.worst_mean));
}

TEST(CurveDifference, StepsWithoutANumberDoNotCount) {
  std::vector<CurvePoint> a = {point(1, std::nan("")), point(2, HUGE_VAL), point(3, 4)};
  a[0].ce_loss = 5.5;  // stands in where the loss as optimised is not logged
  const std::vector<CurvePoint> b = {point(1, 5), point(2, 4), point(3, 4)};
  const CurveDifference result = compare_curves(a, b);
  EXPECT_EQ(result.common_steps, 2);
  EXPECT_EQ(result.not_finite, 1);
  EXPECT_EQ(result.max_abs, 0.5);
}

TEST(CurveDifference, BatchesAreComparedWhereBothLoggedThem) {
  const std::vector<CurvePoint> a = {point(1, 5, "x"), point(2, 4, "y"), point(3, 4)};
  const std::vector<CurvePoint> b = {point(1, 5, "x"), point(2, 4, "z"), point(3, 4, "w")};
  const CurveDifference result = compare_curves(a, b);
  EXPECT_EQ(result.batches, 2);
  EXPECT_EQ(result.different_batches, 1);
}

}  // namespace
}  // namespace lockstep
