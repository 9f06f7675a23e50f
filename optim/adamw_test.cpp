#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "optim/adamw_ref.h"
#include "optim/skip_step.h"

namespace lockstep {
namespace {

Json golden(const std::string& name) {
  const std::string path = LOCKSTEP_SOURCE_DIR "/tests/golden/optim/" + name;
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return parse_json(text.str(), path);
}

// fp32 state of about 1 over 200 steps, each rounding 2^-24 relative: 1e-6 is the bound.
void expect_near(const std::vector<float>& got, const Json& want, const std::string& where) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i].get<float>(), 1e-6) << where << " element " << i;
  }
}

struct Trainee {
  std::vector<float> p, m, v;
  std::int64_t updates = 0;
  SkipStep skip;

  explicit Trainee(std::vector<float> start) : p(std::move(start)), m(p.size()), v(p.size()) {}

  // One step as the trainer takes it; false when it was skipped.
  bool step(const OptimConfig& config, const Json& each, double lr) {
    if (skip.judge(config.skip_step, each["loss"], each["grad_norm"]) != StepVerdict::kTake) {
      return false;
    }
    const auto g = each["grad"].get<std::vector<float>>();
    adamw_ref<float>(p, m, v, g, config, adamw_factors(config, lr, ++updates, true));
    return true;
  }
};

TEST(AdamW, EqualsTwoHundredGoldenStepsWithSkips) {
  const Json file = golden("skip_step_adamw.json");
  Trainee run(file["initial_param"].get<std::vector<float>>());
  for (const Json& each : file["steps"]) {
    const std::string where = "step " + each["k"].dump();
    EXPECT_EQ(!run.step({}, each, each["lr"]), each["skipped"].get<bool>()) << where;
    if (!each.contains("param")) continue;
    expect_near(run.p, each["param"], where + " weights");
    expect_near(run.m, each["exp_avg"], where + " first moment");
    expect_near(run.v, each["exp_avg_sq"], where + " second moment");
    EXPECT_EQ(static_cast<double>(run.updates), each["adam_step"].get<double>()) << where;
  }
}

TEST(AdamW, EqualsTheGoldenTraceWithAShortWindow) {
  const Json file = golden("adamw_trace.json");
  Trainee run(file["w0"].get<std::vector<float>>());
  OptimConfig config;
  config.skip_step.window = 8;
  for (const Json& each : file["steps"]) {
    EXPECT_EQ(!run.step(config, each, 0.01), each["skipped"].get<double>() != 0);
    expect_near(run.p, each["p"], "trace");
    EXPECT_EQ(static_cast<double>(run.updates), each["step"].get<double>());
  }
}

TEST(AdamW, FirstStepMovesByTheLearningRateAgainstTheGradientsSign) {
  // m / (1 - b1) = g and sqrt(v / (1 - b2)) = |g|, so p -= lr sign(g) when eps is negligible.
  std::vector<double> p = {1.0, -1.0};
  std::vector<double> m(2), v(2);
  const std::vector<double> g = {0.5, -3.0};
  OptimConfig config;
  config.weight_decay = 0;
  adamw_ref<double>(p, m, v, g, config, adamw_factors(config, 1e-2, 1, true));
  EXPECT_NEAR(p[0], 0.99, 1e-9);
  EXPECT_NEAR(p[1], -0.99, 1e-9);
}

TEST(AdamW, DecayAppliesToEverythingButTheInputEmbedding) {
  const OptimConfig config;
  EXPECT_FALSE(is_decayed(config, "model.embed_tokens.weight"));
  EXPECT_TRUE(is_decayed(config, "lm_head.weight"));
  EXPECT_TRUE(is_decayed(config, "model.norm.weight"));
  EXPECT_TRUE(is_decayed(config, "model.layers.0.self_attn.q_norm.weight"));
  EXPECT_DOUBLE_EQ(adamw_factors(config, 1e-3, 1, true).decay, 1 - 1e-4);
  EXPECT_EQ(adamw_factors(config, 1e-3, 1, false).decay, 1);
}

TEST(Clip, CoefficientIsOneUpToTheThreshold) {
  EXPECT_EQ(clip_coefficient(0, 1), 1);
  EXPECT_EQ(clip_coefficient(0.5, 1), 1);
  EXPECT_DOUBLE_EQ(clip_coefficient(1, 1), 1 / (1 + 1e-6));
  EXPECT_DOUBLE_EQ(clip_coefficient(4, 1), 1 / (4 + 1e-6));
  EXPECT_EQ(clip_coefficient(4, 0), 1);
  EXPECT_THROW((void)clip_coefficient(std::nan(""), 1), Error);
}

}  // namespace
}  // namespace lockstep
