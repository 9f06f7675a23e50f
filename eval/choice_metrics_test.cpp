#include "eval/choice_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

TEST(ChoiceMetrics, TheThreeRulesDiffer) {
  // Per character: -1, -0.6, -0.75; per byte: -1, -0.6, -0.5.
  const std::vector<Score> scores = {{-2, false}, {-6, false}, {-3, false}};
  const std::vector<std::string> choices = {"ab", "abcdefghij", "ab\u00e9\u00e9"};
  const Picks picks = pick(scores, choices);
  EXPECT_EQ(picks.acc, 0U);
  EXPECT_EQ(picks.acc_norm, 1U);
  EXPECT_EQ(picks.acc_bytes, 2U);
}

TEST(ChoiceMetrics, TiesGoToTheLowestIndex) {
  const std::vector<Score> scores = {{-4, false}, {-3, false}, {-3, false}};
  const std::vector<std::string> choices = {"a", "b", "c"};
  EXPECT_EQ(pick(scores, choices).acc, 1U);
  EXPECT_EQ(pick(scores, choices).acc_norm, 1U);
}

TEST(ChoiceMetrics, StandardErrorIsOfTheSample) {
  // Answers 1 1 1 0: mean 0.75, sample variance 0.25, error 0.5 / 2.
  const Share share = share_of(3, 4);
  EXPECT_EQ(share.value, 0.75);
  EXPECT_EQ(share.error, 0.25);
  EXPECT_TRUE(std::isnan(share_of(1, 1).error));
  EXPECT_TRUE(std::isnan(share_of(0, 0).value));
}

TEST(ChoiceMetrics, GroupsWeightBySizeAndPoolTheError) {
  const std::vector<ChoiceCounts> parts = {{.n = 4, .acc = 3}, {.n = 2, .acc = 1}};
  const Share share = pooled(parts, &ChoiceCounts::acc);
  EXPECT_DOUBLE_EQ(share.value, 4.0 / 6);
  // n se^2 is the sample variance: 0.25 and 0.5; (3 * 0.25 + 1 * 0.5) / (6 - 2) / 6.
  EXPECT_DOUBLE_EQ(share.error, std::sqrt(1.25 / 4 / 6));
  EXPECT_DOUBLE_EQ(pooled(std::span(parts).first(1), &ChoiceCounts::acc).error,
                   share_of(3, 4).error);
}

}  // namespace
}  // namespace lockstep
