#include "report/html_series.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

void add(StepSeries& series, std::int64_t step, double value) {
  series.add(step, std::array<double, 1>{value});
}

TEST(StepSeries, KeepsEveryStepWhileThereIsRoom) {
  StepSeries series(1, 4);
  for (const std::int64_t step : {3, 5, 6, 9}) add(series, step, static_cast<double>(step) / 3);
  ASSERT_EQ(series.size(), 4U);
  EXPECT_EQ(series.width(), 1);
  EXPECT_EQ(series.step(1), 5);
  EXPECT_EQ(series.value(1, 0).mean, 5.0 / 3);
  EXPECT_EQ(series.value(1, 0).min, series.value(1, 0).max);
}

TEST(StepSeries, PutsNeighboursTogetherWithMeanAndExtremes) {
  StepSeries series(1, 4);
  for (std::int64_t step = 0; step < 5; ++step) add(series, step, static_cast<double>(step * step));
  EXPECT_EQ(series.width(), 2);
  ASSERT_EQ(series.size(), 3U);
  EXPECT_EQ(series.step(1), 3);
  EXPECT_EQ(series.value(1, 0).mean, 6.5);  // of 4 and 9
  EXPECT_EQ(series.value(1, 0).min, 4);
  EXPECT_EQ(series.value(1, 0).max, 9);
  EXPECT_EQ(series.value(2, 0).mean, 16);
}

TEST(StepSeries, NeverLosesAPeakInAMillionSteps) {
  StepSeries series(2, 1000);
  for (std::int64_t step = 1; step <= 1'413'814; ++step) {
    series.add(step, std::array<double, 2>{step == 777'777 ? 99.0 : 1.0, kNone});
  }
  EXPECT_LE(series.size(), 1000U);
  EXPECT_GE(series.size(), 500U);
  EXPECT_EQ(series.step(series.size() - 1), 1'413'814);
  double most = 0;
  for (std::size_t i = 0; i < series.size(); ++i) most = std::max(most, series.value(i, 0).max);
  EXPECT_EQ(most, 99);
  EXPECT_TRUE(std::isnan(series.value(0, 1).mean));
}

TEST(StepSeries, CountsOnlyFiniteNumbers) {
  StepSeries series(1, 2);
  add(series, 0, 1);
  add(series, 1, kNone);
  add(series, 2, 5);
  ASSERT_EQ(series.width(), 2);
  EXPECT_EQ(series.value(0, 0).mean, 1);
  EXPECT_EQ(series.value(1, 0).mean, 5);
}

TEST(StepSeries, SaysWhatChangedSinceAStep) {
  StepSeries series(1, 4);
  for (std::int64_t step = 0; step < 7; ++step) add(series, step, 0);
  ASSERT_EQ(series.width(), 2);  // buckets end at 1, 3, 5, 6
  EXPECT_EQ(series.first_changed_since(-1), 0U);
  EXPECT_EQ(series.first_changed_since(3), 2U);
  EXPECT_EQ(series.first_changed_since(4), 2U);
  EXPECT_EQ(series.first_changed_since(6), 4U);
  add(series, 7, 0);
  EXPECT_EQ(series.first_changed_since(6), 3U);  // the last bucket grew
}

}  // namespace
}  // namespace lockstep
