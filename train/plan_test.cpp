#include "train/plan.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"

namespace lockstep {
namespace {

const std::string kRecipes = LOCKSTEP_SOURCE_DIR "/recipes/";

Plan plan_of(const std::string& name, const std::vector<std::string>& overrides = {}) {
  const std::string path = kRecipes + name + ".toml";
  const Recipe recipe = read_recipe(path, overrides);
  return make_plan({.recipe = recipe, .stages = read_stages(path, recipe)});
}

const PlanPoint& at(const StagePlan& stage, std::int64_t step) {
  for (const PlanPoint& point : stage.points) {
    if (point.step == step) return point;
  }
  throw std::runtime_error("no point at step " + std::to_string(step));
}

TEST(Plan, WalksTheSevenBillionStagesOverEveryJunction) {
  const Plan plan = plan_of("olmo3-7b/stage1-part1");
  ASSERT_EQ(plan.stages.size(), 4U);
  EXPECT_EQ(plan.training_steps, 1413814 + 47684 + 11921);
  EXPECT_NEAR(plan.training_tokens, 5.92997e12 + 1.00001e11 + 5.0001e10, 1e8);

  const StagePlan& part1 = plan.stages[0];
  EXPECT_EQ(part1.last_step, 597046);
  EXPECT_NEAR(at(part1, 2000).lr, 3e-4, 1e-15);
  EXPECT_NEAR(at(part1, 597046).lr, 1.65e-4, 1e-9);
  EXPECT_EQ(at(part1, 1).position.first_entry, 0);
  EXPECT_EQ(at(part1, 597046).position.first_entry, 597045LL * 512);

  const StagePlan& part2 = plan.stages[1];
  EXPECT_EQ(part2.first_step, 596048);
  EXPECT_NEAR(at(part2, 597046).lr, 1.65e-4, 1e-15);
  EXPECT_NEAR(at(part2, 1413814).lr, 3.93252716718148e-05, 1e-16);
  const DataPosition& last = at(part2, 1413814).position;
  EXPECT_EQ(last.epoch, 1);
  EXPECT_EQ(last.step_in_epoch, 1413813);
  EXPECT_EQ(*last.first_entry + 512, 723872768);

  EXPECT_EQ(plan.stages[2].last_step, 47684);
  EXPECT_EQ(at(plan.stages[2], 47684).lr, 0);
  EXPECT_EQ(at(plan.stages[2], 1).position.entries_before, 0);
  EXPECT_FALSE(at(plan.stages[2], 1).position.epoch.has_value());
  EXPECT_EQ(plan.stages[3].last_step, 11921);
  EXPECT_NEAR(at(plan.stages[3], 200).lr, 0.00020712352850360292, 1e-18);
}

TEST(Plan, StagesAreTheSameFromWhicheverRecipeTheyAreAskedFor) {
  const Plan one = plan_of("olmo3-7b/stage1-part1");
  const Plan three = plan_of("olmo3-7b/stage3");
  EXPECT_EQ(Json::parse(plan_json(one))["stages"], Json::parse(plan_json(three))["stages"]);
  EXPECT_EQ(three.last_step, 11921);
}

TEST(Plan, EveryShippedRecipeHasOne) {
  for (const char* name : {"olmo3-32b/stage1", "olmo3-32b/stage2-ingredient1", "olmo3-32b/stage3",
                           "olmo3-190m", "olmo3-370m", "olmo3-1b", "demo"}) {
    const Plan plan = plan_of(name);
    EXPECT_GT(plan.memory.total(), 0) << name;
    EXPECT_GT(plan_text(plan).size(), 1000U) << name;
    EXPECT_EQ(plan.presets.size(), 14U);
  }
}

TEST(Plan, FlopsOfAStepAreThoseOfItsInstances) {
  const Plan plan = plan_of("olmo3-7b/stage1-part1", {"batch.instances=2"});
  EXPECT_NEAR(plan.step_flops.maxtext / 1e12, 2 * 391.27, 0.01);
  EXPECT_NEAR(plan.step_flops.window_exact / 1e12, 2 * 381.38, 0.01);
  EXPECT_NEAR(plan.step_flops.olmo_core / 1e12, 2 * 404.5, 0.1);
}

TEST(Plan, MemoryByClassFollowsParametersAndRemat) {
  const Plan plan = plan_of("olmo3-190m", {"batch.instances=8"});
  const std::int64_t floats = plan.parameters.total();
  const auto& classes = plan.memory.classes;
  // The flat arrays have gaps of less than 64 bytes between tensors.
  EXPECT_NEAR(static_cast<double>(classes[0].bytes), static_cast<double>(4 * floats), 1e5);
  EXPECT_EQ(classes[2].bytes, 2 * classes[0].bytes);
  EXPECT_EQ(classes[3].bytes, 3 * classes[0].bytes);  // 8 leaves: log2(8) partial sums
  EXPECT_EQ(plan.memory.checkpoint_bytes, 3 * classes[0].bytes);
  const auto& activations = plan.memory.activations;
  ASSERT_EQ(activations.size(), 4U);
  EXPECT_GT(activations[0].bytes, activations[1].bytes);  // none > mlp > full
  EXPECT_GT(activations[0].bytes, activations[2].bytes);  // none > attention > full
  EXPECT_GT(activations[1].bytes, activations[3].bytes);
  EXPECT_GT(activations[2].bytes, activations[3].bytes);
}

TEST(Plan, DiskCountsTheCheckpointsThatRetentionKeeps) {
  const auto kept = [](std::vector<std::string> overrides) {
    overrides.emplace_back("train.steps=300");
    const Plan plan = plan_of("demo", overrides);
    return plan.memory.disk_bytes / plan.memory.checkpoint_bytes;
  };
  EXPECT_EQ(kept({}), 3);
  EXPECT_EQ(kept({"checkpoint.keep_last=0"}), 6);
  EXPECT_EQ(kept({"checkpoint.keep_every=100", "checkpoint.keep_last=1"}), 3);
  EXPECT_EQ(kept({"checkpoint.also_at=[7]"}), 4);
  EXPECT_EQ(kept({"checkpoint.interval=0"}), 1);
}

TEST(Plan, ShowsEpochBoundariesAndPositionsWithinThem) {
  const Recipe recipe =
      read_recipe(kRecipes + "demo.toml", std::vector<std::string>{"train.steps=300"});
  const StagePlan stage = plan_stage(recipe, 403);  // 100 full batches of 4 an epoch
  EXPECT_EQ(at(stage, 100).what, "epoch 1 ends");
  EXPECT_EQ(at(stage, 101).position.epoch, 2);
  EXPECT_EQ(at(stage, 101).position.first_entry, 0);
  EXPECT_EQ(at(stage, 300).position.step_in_epoch, 99);
  EXPECT_EQ(at(stage, 300).what, "schedule ends, epoch 3 ends, last step");
}

TEST(Plan, RefusesALengthThatHangsOnDataNotKnown) {
  EXPECT_THROW(static_cast<void>(plan_of("olmo3-32b/stage1", {"data.instances="})), Error);
  EXPECT_THROW(static_cast<void>(plan_of("olmo3-7b/stage2", {"run.name=other"})), Error);
  EXPECT_THROW(static_cast<void>(plan_of("olmo3-7b/stage1-part2", {"init.step=1413814"})), Error);
}

TEST(Plan, JsonHoldsWhatTheTextShows) {
  const Plan plan = plan_of("olmo3-7b/stage1-part2");
  const Json json = parse_json(plan_json(plan), "plan");
  EXPECT_EQ(json["parameters"]["total"], 7298617344);
  EXPECT_EQ(json["training_steps"], 1473419);
  EXPECT_EQ(json["presets"]["olmo3-7b"]["parameters"], 7298617344);
  EXPECT_EQ(json["recipe"]["optim"]["lr"], 3e-4);
  const std::string text = plan_text(plan);
  for (const char* part :
       {"7,298,617,344", "1,413,814", "1,473,419", "olmo3-13b", "kernel scratch"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
}  // namespace lockstep
