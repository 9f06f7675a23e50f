#include "optim/skip_step.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "base/json.h"

namespace lockstep {
namespace {

Json golden(const std::string& name) {
  const std::string path = LOCKSTEP_SOURCE_DIR "/tests/golden/optim/" + name;
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return parse_json(text.str(), path);
}

TEST(SkipStep, DecidesEveryGoldenScenarioAlike) {
  const Json scenarios = golden("skip_step_window.json")["scenarios"];
  ASSERT_EQ(scenarios.size(), 14U);
  for (const Json& scenario : scenarios) {
    SkipStep skip;
    for (std::size_t k = 0; k < scenario["steps"].size(); ++k) {
      const Json& step = scenario["steps"][k];
      const StepVerdict verdict = skip.judge({}, step[0], step[1]);
      EXPECT_EQ(verdict != StepVerdict::kTake, step[2].get<bool>()) << scenario["name"] << " " << k;
    }
  }
}

TEST(SkipStep, NonFiniteIsSkippedAndNeverEntersTheWindow) {
  SkipStep skip;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 70; ++i) (void)skip.judge({}, 2 + 0.01 * (i % 3), 1 + 0.01 * (i % 3));
  const SkipStep before = skip;
  EXPECT_EQ(skip.judge({}, nan, 1), StepVerdict::kNonFinite);
  EXPECT_EQ(skip.judge({}, 2, infinity), StepVerdict::kNonFinite);
  EXPECT_EQ(skip.losses, before.losses);
  EXPECT_EQ(skip.grad_norms, before.grad_norms);
  EXPECT_EQ(skip.skipped_in_row, 2);
  EXPECT_EQ(skip.judge({}, 2, 1), StepVerdict::kTake);
  EXPECT_EQ(skip.skipped_in_row, 0);
  EXPECT_EQ(skip.skipped_total, 2);
}

TEST(SkipStep, SwitchedOffStillSkipsWhatIsNotFinite) {
  SkipStep skip;
  const SkipStepConfig off{.enabled = false};
  for (int i = 0; i < 70; ++i) (void)skip.judge(off, 2 + 0.01 * (i % 3), 1);
  EXPECT_EQ(skip.judge(off, 100, 1), StepVerdict::kTake);
  EXPECT_EQ(skip.judge(off, std::numeric_limits<double>::quiet_NaN(), 1), StepVerdict::kNonFinite);
}

TEST(SkipStep, StateCopiedAnywhereGoesOnAlike) {
  const Json scenarios = golden("skip_step_window.json")["scenarios"];
  const Json& steps = scenarios[10]["steps"];
  SkipStep whole;
  SkipStep resumed;
  for (const Json& step : steps) {
    // As after a restart: only the public members survive.
    resumed = SkipStep{.losses = resumed.losses,
                       .grad_norms = resumed.grad_norms,
                       .skipped_in_row = resumed.skipped_in_row,
                       .skipped_total = resumed.skipped_total};
    EXPECT_EQ(whole.judge({}, step[0], step[1]), resumed.judge({}, step[0], step[1]));
  }
  EXPECT_EQ(whole.losses, resumed.losses);
  EXPECT_EQ(whole.losses.size(), 128U);
}

TEST(SkipStep, TellsWhichOfTheTwoWasTheOutlier) {
  SkipStep skip;
  for (int i = 0; i < 70; ++i) (void)skip.judge({}, 2 + 0.01 * (i % 3), 1 + 0.01 * (i % 3));
  SkipStep other = skip;
  EXPECT_EQ(skip.judge({}, 9, 1), StepVerdict::kLossOutlier);
  EXPECT_EQ(other.judge({}, 2, 9), StepVerdict::kGradNormOutlier);
}

}  // namespace
}  // namespace lockstep
