#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "config/read.h"

namespace lockstep {
namespace {

Json golden() {
  const std::string path = LOCKSTEP_SOURCE_DIR "/tests/golden/optim/lr_schedules.json";
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return parse_json(text.str(), path);
}

// 1e-12 of the value plus 1e-15 of the peak: a few roundings of fp64 in another order of
// operations.
void expect_rate(double got, double want, double peak, const std::string& where) {
  EXPECT_LE(std::abs(got - want), 1e-12 * std::abs(want) + 1e-15 * peak)
      << where << ": " << got << " against " << want;
}

void expect_case(const ScheduleConfig& config, std::int64_t tokens_per_step,
                 const std::string& name) {
  const Json file = golden();
  for (const Json& each : file["cases"]) {
    if (each["name"] != name) continue;
    const double peak = each["lr"];
    const Schedule schedule = resolve_schedule(config, peak, tokens_per_step, 1);
    EXPECT_EQ(schedule.horizon, each["t_max"].get<std::int64_t>());
    for (const Json& pair : each["values"]) {
      expect_rate(schedule.lr(pair[0]), pair[1], peak, name + " t=" + pair[0].dump());
    }
    return;
  }
  FAIL() << "no golden case " << name;
}

TEST(Schedule, EqualsTheFourOfficialStages) {
  expect_case({.warmup_steps = 2000, .horizon_tokens = 5'000'000'000'000}, 4194304, "stage1_part1");
  expect_case({.kind = ScheduleKind::kHalfCosine,
               .warmup_steps = 597046,
               .horizon_tokens = 7'000'000'000'000},
              4194304, "stage1_part2");
  expect_case(
      {.kind = ScheduleKind::kLinear, .horizon_tokens = 100'000'000'000, .final_fraction = 0},
      2097152, "stage2");
  expect_case({.kind = ScheduleKind::kLinear,
               .warmup_steps = 200,
               .horizon_steps = 11921,
               .final_fraction = 0},
              4194304, "stage3");
}

void expect_variant(ScheduleConfig config, const std::string& name) {
  config.warmup_steps = 10;
  const Schedule schedule = resolve_schedule(config, 3e-4, 1, 100);
  const Json all = golden();
  const Json& values = all["variants"][name];
  ASSERT_EQ(values.size(), all["variants_t"].size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t t = all["variants_t"][i];
    expect_rate(schedule.lr(t), values[i], 3e-4, name + " t=" + std::to_string(t));
  }
}

TEST(Schedule, EqualsOlmoCoreForEveryKindAndTheLinearDecay) {
  expect_variant({.kind = ScheduleKind::kCosine}, "CosWithWarmup");
  expect_variant({.kind = ScheduleKind::kHalfCosine}, "HalfCosWithWarmup");
  expect_variant({.kind = ScheduleKind::kLinear, .final_fraction = 0}, "LinearWithWarmup");
  expect_variant({.kind = ScheduleKind::kWsd, .decay_steps = 20}, "WSD");
  expect_variant({.kind = ScheduleKind::kCosine, .decay_steps = 20}, "CosWithWarmupAndLinearDecay");
}

TEST(Schedule, StaysAtItsLastValuePastTheHorizon) {
  const Schedule wsd = resolve_schedule({.kind = ScheduleKind::kWsd, .decay_steps = 20}, 1, 1, 100);
  EXPECT_EQ(wsd.lr(101), 0);
  EXPECT_EQ(wsd.lr(1000), 0);
  const Schedule cosine = resolve_schedule({.final_fraction = 0.5}, 1, 1, 100);
  EXPECT_EQ(cosine.lr(100), 0.5);
  EXPECT_EQ(cosine.lr(1'000'000'000), 0.5);
}

TEST(Schedule, ConstantWithAndWithoutWarmup) {
  EXPECT_EQ(resolve_schedule({.kind = ScheduleKind::kConstant}, 2, 1, 5).lr(1), 2);
  const Schedule warm =
      resolve_schedule({.kind = ScheduleKind::kConstant, .warmup_steps = 4}, 2, 1, 5);
  EXPECT_EQ(warm.lr(1), 0.5);
  EXPECT_EQ(warm.lr(4), 2);
  EXPECT_EQ(warm.lr(50), 2);
}

TEST(Schedule, TokensConvertToStepsRoundedUp) {
  EXPECT_EQ(steps_for_tokens(5'000'000'000'000, 4194304), 1192093);
  EXPECT_EQ(steps_for_tokens(7'000'000'000'000, 4194304), 1668931);
  EXPECT_EQ(steps_for_tokens(100'000'000'000, 2097152), 47684);
  EXPECT_EQ(steps_for_tokens(0, 8), 0);
  EXPECT_EQ(steps_for_tokens(8, 8), 1);
  EXPECT_EQ(steps_for_tokens(9, 8), 2);
  const Schedule schedule =
      resolve_schedule({.warmup_tokens = 15, .horizon_tokens = 95}, 1, 10, 1000);
  EXPECT_EQ(schedule.warmup, 2);
  EXPECT_EQ(schedule.horizon, 10);
}

TEST(Schedule, JunctionOfStageOneIsContinuousAtTheStopButNotAtTheLoadedStep) {
  const Schedule one = resolve_schedule({.warmup_steps = 2000, .horizon_tokens = 5'000'000'000'000},
                                        3e-4, 4194304, 1);
  const Schedule two = resolve_schedule({.kind = ScheduleKind::kHalfCosine,
                                         .warmup_steps = 597046,
                                         .horizon_tokens = 7'000'000'000'000},
                                        3e-4, 4194304, 1);
  EXPECT_NEAR(one.lr(597046), 1.65e-4, 1e-9);
  EXPECT_NEAR(two.lr(597046), 1.65e-4, 1e-9);
  EXPECT_NEAR(one.lr(596047), 1.6536e-4, 1e-8);
  EXPECT_NEAR(two.lr(596047), 1.6472e-4, 1e-8);
}

TEST(Schedule, RefusesLengthsThatDoNotFit) {
  EXPECT_THROW((void)resolve_schedule({.warmup_steps = 100}, 1, 1, 100), Error);
  EXPECT_THROW((void)resolve_schedule(
                   {.kind = ScheduleKind::kWsd, .warmup_steps = 60, .decay_steps = 50}, 1, 1, 100),
               Error);
  const ScheduleConfig both{.warmup_steps = 1, .warmup_tokens = 1};
  EXPECT_THROW(both.validate(), Error);
  const ScheduleConfig no_decay{.kind = ScheduleKind::kWsd};
  EXPECT_THROW(no_decay.validate(), Error);
}

}  // namespace
}  // namespace lockstep
