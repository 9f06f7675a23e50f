#include "report/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace lockstep {
namespace {

// `n` documents with 1 to 200 targets whose differences a target have this mean and deviation.
std::vector<RatioTerm> synthetic(std::size_t n, double mean, double deviation, std::uint64_t seed) {
  const CounterRng rng(seed, "documents");
  std::vector<RatioTerm> terms;
  for (std::size_t i = 0; i < n; ++i) {
    const double targets = 1 + std::floor(200 * rng.uniform(2 * i));
    const double difference = mean + deviation * normal_quantile(rng.uniform(2 * i + 1));
    terms.push_back({difference * targets, targets});
  }
  return terms;
}

TEST(Bootstrap, ValueIsTheRatioOfTheSums) {
  ThreadPool pool(1);
  const std::vector<RatioTerm> terms = {{1, 10}, {4, 10}, {-2, 5}};
  EXPECT_DOUBLE_EQ(bootstrap_ratio(terms, {}, pool).value, 3.0 / 25);
  EXPECT_EQ(bootstrap_ratio(terms, {}, pool).n, 3);
}

// Of two documents with equal denominators the resampled means are 0 (1/4), 1/2 (1/2) and 1 (1/4),
// so that both tails end at the extremes.
TEST(Bootstrap, TwoDocumentsSpanTheirValues) {
  ThreadPool pool(1);
  const Estimate estimate = bootstrap_ratio(std::vector<RatioTerm>{{0, 1}, {1, 1}}, {}, pool);
  EXPECT_EQ(estimate.interval.low, 0);
  EXPECT_EQ(estimate.interval.high, 1);
}

TEST(Bootstrap, MatchesTheNormalTheoryOfTheMean) {
  ThreadPool pool(2);
  std::vector<RatioTerm> terms;
  for (int i = 0; i < 400; ++i) terms.push_back({static_cast<double>(i % 20), 1});
  const Estimate estimate = bootstrap_ratio(terms, {.seed = 3}, pool);
  // Variance of 0..19 is 33.25; the half width 1.96 sqrt(33.25 / 400) = 0.5651, widened by t and
  // n / (n - 1) to 0.5676; a quantile of 10,000 resamples is known to 2% of it.
  EXPECT_DOUBLE_EQ(estimate.value, 9.5);
  EXPECT_NEAR(estimate.interval.high - 9.5, 0.5676, 0.02);
  EXPECT_NEAR(9.5 - estimate.interval.low, 0.5676, 0.02);
}

TEST(Bootstrap, BitsDependOnTheSeedAndNotOnThreads) {
  const auto terms = synthetic(37, 0.1, 1, 5);
  ThreadPool one(1);
  ThreadPool three(3);
  const Estimate a = bootstrap_ratio(terms, {.seed = 9}, one);
  const Estimate b = bootstrap_ratio(terms, {.seed = 9}, three);
  EXPECT_EQ(a.interval.low, b.interval.low);
  EXPECT_EQ(a.interval.high, b.interval.high);
  EXPECT_NE(a.interval.low, bootstrap_ratio(terms, {.seed = 10}, one).interval.low);
}

TEST(Bootstrap, DegenerateSamples) {
  ThreadPool pool(1);
  const Estimate none = bootstrap_ratio({}, {}, pool);
  EXPECT_TRUE(std::isnan(none.value) && std::isnan(none.interval.low));
  const Estimate one = bootstrap_ratio(std::vector<RatioTerm>{{3, 4}}, {}, pool);
  EXPECT_EQ(one.value, 0.75);
  EXPECT_EQ(one.interval.low, one.interval.high);
  const Estimate equal = bootstrap_ratio(std::vector<RatioTerm>(50, {0, 7}), {}, pool);
  EXPECT_EQ(equal.interval.low, 0);
  EXPECT_EQ(equal.interval.high, 0);
  std::vector<RatioTerm> broken(50, {0, 7});
  broken[3].numerator = std::nan("");
  EXPECT_TRUE(std::isnan(bootstrap_ratio(broken, {}, pool).interval.high));
}

// Nominal 95%. Of 400 trials the count has a standard deviation of 4.4 trials.
TEST(Bootstrap, IntervalsCoverTheTruth) {
  ThreadPool pool(2);
  for (const std::size_t n : {12U, 60U}) {
    int covered = 0;
    for (std::uint64_t trial = 0; trial < 400; ++trial) {
      const Estimate estimate = bootstrap_ratio(synthetic(n, 0.3, 2, 1000 + trial),
                                                {.seed = trial, .resamples = 1000}, pool);
      covered += estimate.interval.low <= 0.3 && 0.3 <= estimate.interval.high ? 1 : 0;
    }
    EXPECT_GE(covered, 366) << n;
    EXPECT_LE(covered, 394) << n;
  }
}

// Tables of Student's t: 2.262157 and 2.045230 at 97.5% with 9 and 29 degrees, 1.833113 at 95%.
TEST(Student, QuantilesEqualTheTable) {
  EXPECT_NEAR(t_quantile(0.975, 9), 2.262157, 2e-5);
  EXPECT_NEAR(t_quantile(0.975, 29), 2.045230, 1e-6);
  EXPECT_NEAR(t_quantile(0.95, 9), 1.833113, 2e-5);
  EXPECT_NEAR(t_quantile(0.025, 9), -2.262157, 2e-5);
}

TEST(Answers, WithoutDisagreementTheWidthIsThatOfTheScore) {
  constexpr double kZ2 = 1.959963984540054 * 1.959963984540054;
  for (const std::int64_t n : {1, 20, 200}) {
    const Estimate estimate = accuracy_difference({.n = n, .only_a = 0, .only_b = 0});
    const double width = kZ2 / (static_cast<double>(n) + kZ2);
    EXPECT_EQ(estimate.value, 0);
    EXPECT_NEAR(estimate.interval.high, width, 1e-12) << n;
    EXPECT_NEAR(estimate.interval.low, -width, 1e-12) << n;
  }
}

TEST(Answers, SidesMirrorEachOther) {
  const Estimate a = accuracy_difference({.n = 80, .only_a = 9, .only_b = 2});
  const Estimate b = accuracy_difference({.n = 80, .only_a = 2, .only_b = 9});
  EXPECT_DOUBLE_EQ(a.value, 7.0 / 80);
  EXPECT_NEAR(a.interval.low, -b.interval.high, 1e-12);
  EXPECT_NEAR(a.interval.high, -b.interval.low, 1e-12);
  EXPECT_LT(a.interval.low, a.value);
}

TEST(Answers, ExtremesStayInsideTheRange) {
  const Estimate all = accuracy_difference({.n = 7, .only_a = 7, .only_b = 0});
  EXPECT_EQ(all.value, 1);
  EXPECT_LE(all.interval.high, 1);
  EXPECT_GT(all.interval.low, 0);
  EXPECT_TRUE(std::isnan(accuracy_difference({}).value));
}

// Large samples: the Wald interval, whose variance is (b + c - (b - c)^2 / n) / n^2.
TEST(Answers, LargeSamplesGiveTheWaldInterval) {
  const PairedAnswers answers{.n = 100000, .only_a = 5200, .only_b = 4800};
  const Estimate estimate = accuracy_difference(answers);
  const double half = 1.959963984540054 * std::sqrt(10000.0 - 1.6) / 100000.0;
  EXPECT_NEAR(estimate.interval.low, 0.004 - half, 2e-6);
  EXPECT_NEAR(estimate.interval.high, 0.004 + half, 2e-6);
}

// Every outcome of n = 30 questions with its multinomial probability: exact coverage. It is above
// nominal where disagreement is rare, as counts are whole numbers.
TEST(Answers, ExactCoverageIsNearNominal) {
  constexpr std::int64_t n = 30;
  const auto log_factorial = [](std::int64_t k) { return std::lgamma(static_cast<double>(k) + 1); };
  for (const auto& [p, q] : {std::pair{0.1, 0.1}, {0.3, 0.1}, {0.02, 0.1}}) {
    double coverage = 0;
    for (std::int64_t b = 0; b <= n; ++b) {
      for (std::int64_t c = 0; b + c <= n; ++c) {
        const Estimate estimate = accuracy_difference({.n = n, .only_a = b, .only_b = c});
        if (estimate.interval.low > p - q || estimate.interval.high < p - q) continue;
        coverage += std::exp(log_factorial(n) - log_factorial(b) - log_factorial(c) -
                             log_factorial(n - b - c) + static_cast<double>(b) * std::log(p) +
                             static_cast<double>(c) * std::log(q) +
                             static_cast<double>(n - b - c) * std::log(1 - p - q));
      }
    }
    EXPECT_GT(coverage, 0.93) << p;
    EXPECT_LT(coverage, 0.985) << p;
  }
}

TEST(Mean, OfEqualEstimatesIsNarrowerByTheRootOfTheirNumber) {
  const std::vector<Estimate> four(4, {.value = 0.1, .interval = {0, 0.3}, .n = 50});
  const Estimate mean = mean_of(four);
  EXPECT_DOUBLE_EQ(mean.value, 0.1);
  EXPECT_DOUBLE_EQ(mean.interval.low, 0.05);
  EXPECT_DOUBLE_EQ(mean.interval.high, 0.2);
  EXPECT_EQ(mean.n, 200);
  EXPECT_TRUE(std::isnan(mean_of({}).value));
}

TEST(Equivalence, TheWholeIntervalDecides) {
  const auto verdict = [](double low, double high, double tolerance) {
    return judge({.value = (low + high) / 2, .interval = {low, high}, .n = 100}, tolerance);
  };
  EXPECT_EQ(verdict(-0.5, 0.9, 1), Verdict::kReproduced);
  EXPECT_EQ(verdict(-1, 1, 1), Verdict::kReproduced);
  EXPECT_EQ(verdict(0, 0, 0), Verdict::kReproduced);
  EXPECT_EQ(verdict(1.1, 3, 1), Verdict::kDiffers);
  EXPECT_EQ(verdict(-3, -1.1, 1), Verdict::kDiffers);
  EXPECT_EQ(verdict(0.5, 1.5, 1), Verdict::kNotEnoughData);
  EXPECT_EQ(verdict(-2, 2, 1), Verdict::kNotEnoughData);
}

TEST(Equivalence, FewDocumentsNeverTellAndNoNumberDiffers) {
  EXPECT_EQ(judge({.value = 0, .interval = {0, 0}, .n = kMinDocuments - 1}, 1),
            Verdict::kNotEnoughData);
  EXPECT_EQ(judge({.value = 9, .interval = {9, 9}, .n = 1}, 1), Verdict::kNotEnoughData);
  EXPECT_EQ(judge({.value = std::nan(""), .interval = {0, 0}, .n = 50}, 1), Verdict::kDiffers);
}

}  // namespace
}  // namespace lockstep
