#include "report/ablation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"

namespace lockstep {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

// Ranks from tables of the sign test: n = 10 gives the 2nd and 9th value, 25 the 8th and 18th.
TEST(MedianWithInterval, TakesTheRanksOfTheSignTest) {
  const Estimate ten = median_with_interval(one_to(10));
  EXPECT_EQ(ten.value, 5.5);
  EXPECT_EQ(ten.interval.low, 2);
  EXPECT_EQ(ten.interval.high, 9);
  const Estimate more = median_with_interval(one_to(25));
  EXPECT_EQ(more.value, 13);
  EXPECT_EQ(more.interval.low, 8);
  EXPECT_EQ(more.interval.high, 18);
  EXPECT_EQ(more.n, 25);
}

TEST(MedianWithInterval, GivesTheRangeOfAFew) {
  for (const int n : {1, 2, 5, 6}) {
    const Estimate few = median_with_interval(one_to(n));
    EXPECT_EQ(few.interval.low, 1) << n;
    EXPECT_EQ(few.interval.high, n) << n;
  }
  EXPECT_TRUE(std::isnan(median_with_interval({}).value));
}

TEST(MedianWithInterval, DoesNotDependOnTheOrderOrOnOneWildValue) {
  std::vector<double> values = one_to(25);
  std::reverse(values.begin(), values.end());
  values.front() = 1e9;
  const Estimate found = median_with_interval(values);
  EXPECT_EQ(found.value, 13);
  EXPECT_EQ(found.interval.high, 18);
}

std::vector<CurvePoint> curve_of(const std::vector<double>& seconds) {
  std::vector<CurvePoint> curve;
  for (const double s : seconds) {
    CurvePoint point;
    point.step = std::ssize(curve) + 1;
    point.loss = 2;
    point.seconds = s;
    point.tokens = 64 * point.step;
    point.batch_digest = std::to_string(point.step);
    curve.push_back(point);
  }
  return curve;
}

TEST(BlockSeconds, LeaveOutTheFirstStepOfABlock) {
  EXPECT_EQ(block_seconds(curve_of({9, 1, 3, 9, 5, 6, 7}), 3), (std::vector<double>{2, 5.5, 7}));
  EXPECT_EQ(block_seconds(curve_of({4, 2}), 1), (std::vector<double>{4, 2}));
}

MeasuredVariant measured(const std::vector<double>& seconds, const std::vector<double>& ce) {
  MeasuredVariant out;
  out.variant.label = "v";
  out.variant.recipe.batch.instances = 2;
  out.curve = curve_of(seconds);
  out.heldout.domains = {{.label = "a"}, {.label = "b"}};
  for (const double nats : ce) {
    const auto i = out.heldout.documents.size();
    out.heldout.documents.push_back(
        {.document = i, .label = i % 2, .tokens = 11, .targets = 10, .bytes = 0, .ce = nats});
    DomainLoss& domain = out.heldout.domains[i % 2];
    domain.targets += 10;
    domain.ce += nats;
  }
  return out;
}

TEST(Ablation, PairsBlocksSoThatASlowSpellHitsBothAlike) {
  // The second half ran on a machine half as fast; the variant takes 0.8 of the baseline's time.
  std::vector<double> base, other;
  for (int step = 0; step < 40; ++step) {
    base.push_back(step < 20 ? 1.0 : 2.0);
    other.push_back(0.8 * base.back());
  }
  ThreadPool pool(1);
  const std::vector<MeasuredVariant> variants = {measured(base, {30, 40, 50, 20}),
                                                 measured(other, {31, 41, 51, 21})};
  const Ablation found = summarise(variants, 4, pool);
  EXPECT_DOUBLE_EQ(found.rows[1].speed_ratio.value, 1.25);
  EXPECT_DOUBLE_EQ(found.rows[1].speed_ratio.interval.low, 1.25);
  EXPECT_EQ(found.rows[1].speed_ratio.n, 10);
  EXPECT_DOUBLE_EQ(found.rows[1].heldout_delta.value, 0.1);
  EXPECT_NEAR(found.rows[1].heldout_delta.interval.low, 0.1, 1e-12);
  EXPECT_NEAR(found.rows[1].heldout_loss - found.rows[0].heldout_loss, 0.1, 1e-12);
  EXPECT_EQ(found.rows[0].speed_ratio.n, 0);
  EXPECT_NE(ablation_text(found).find("1.250 (1.250 .. 1.250)"), std::string::npos);
  EXPECT_NE(ablation_text(found).find("+0.1000"), std::string::npos);
}

TEST(Ablation, RefusesRunsThatSawOtherBatches) {
  ThreadPool pool(1);
  std::vector<MeasuredVariant> variants = {measured({1, 1, 1}, {}), measured({1, 1, 1}, {})};
  variants[1].curve[1].batch_digest = "other";
  try {
    static_cast<void>(summarise(variants, 2, pool));
    FAIL() << "different batches were compared";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("step 2"), std::string::npos) << error.what();
  }
}

TEST(Ablation, RefusesOtherDocuments) {
  ThreadPool pool(1);
  std::vector<MeasuredVariant> variants = {measured({1}, {3, 4}), measured({1}, {3, 4, 5})};
  EXPECT_THROW(static_cast<void>(summarise(variants, 1, pool)), Error);
}

}  // namespace
}  // namespace lockstep
