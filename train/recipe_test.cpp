#include "train/recipe.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "config/print.h"
#include "model/counts.h"

namespace lockstep {
namespace {

const std::string kRecipes = LOCKSTEP_SOURCE_DIR "/recipes/";

Recipe shipped(const std::string& name, const std::vector<std::string>& overrides = {}) {
  return read_recipe(kRecipes + name + ".toml", overrides);
}

std::string error_of(const std::string& name, const std::vector<std::string>& overrides) {
  try {
    static_cast<void>(shipped(name, overrides));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    return error.what();
  }
  return "no error";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Recipe, EveryShippedFileReadsAndItsResolvedFormReadsBackTheSame) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRecipes)) {
    if (entry.path().extension() != ".toml") continue;
    const Recipe recipe = read_recipe(entry.path().string());
    const Recipe again = parse_recipe(config_toml(recipe), "resolved");
    EXPECT_EQ(describe(config_differences(recipe, again)), "") << entry.path();
    EXPECT_EQ(config_fingerprint(recipe), config_fingerprint(again));
    ++count;
  }
  EXPECT_GE(count, 15);
}

struct Stage {
  const char* name;
  std::int64_t instances, tokens_per_step, sequence, last_step, horizon, seed;
  double peak;
};

TEST(Recipe, OfficialStagesHaveTheirConstants) {
  constexpr double kMid = 0.00020712352850360292;
  for (const Stage& s : std::vector<Stage>{
           {"olmo3-7b/stage1-part1", 512, 4194304, 8192, 597046, 1192093, 34521, 3e-4},
           {"olmo3-7b/stage1-part2", 512, 4194304, 8192, 1413814, 1668931, 34521, 3e-4},
           {"olmo3-7b/stage2", 256, 2097152, 8192, 47684, 47684, 1337, kMid},
           {"olmo3-7b/stage3", 64, 4194304, 65536, 11921, 11921, 34521, kMid},
           {"olmo3-32b/stage1", 1024, 8388608, 8192, 656000, 706907, 34521, 6e-4},
           {"olmo3-32b/stage2-ingredient1", 512, 4194304, 8192, 23842, 23842, 42069,
            0.0002071235285},
           {"olmo3-32b/stage2-ingredient2", 512, 4194304, 8192, 23842, 23842, 42069,
            0.0002071235285},
           {"olmo3-32b/stage3", 128, 8388608, 65536, 11921, 11921, 34521, 0.0002071235285}}) {
    const Recipe recipe = shipped(s.name);
    EXPECT_EQ(recipe.instances_per_step(), s.instances) << s.name;
    EXPECT_EQ(recipe.tokens_per_step(), s.tokens_per_step) << s.name;
    EXPECT_EQ(recipe.data.sequence_length, s.sequence) << s.name;
    EXPECT_EQ(recipe.last_step(), s.last_step) << s.name;
    EXPECT_EQ(recipe.lr_schedule().horizon, s.horizon) << s.name;
    EXPECT_EQ(recipe.data.seed, s.seed) << s.name;
    EXPECT_EQ(recipe.optim.lr, s.peak) << s.name;
    EXPECT_EQ(recipe.data.order, OrderKind::kOlmoCore) << s.name;
    const bool is_32b = std::string(s.name).starts_with("olmo3-32b");
    EXPECT_EQ(recipe.data.filter.enabled, is_32b) << s.name;
    EXPECT_EQ(recipe.model.preset, is_32b ? Preset::k32B : Preset::k7B) << s.name;
    const bool is_long = s.sequence == 65536;
    EXPECT_EQ(recipe.data.document_mask, is_long) << s.name;
    EXPECT_EQ(recipe.model.rope(3).scaling, is_long ? RopeScaling::kYarn : RopeScaling::kNone);
    EXPECT_EQ(recipe.model.rope(0).scaling, RopeScaling::kNone) << s.name;
    EXPECT_EQ(recipe.train.z_loss, 1e-5) << s.name;
    EXPECT_EQ(recipe.train.precision, Precision::kBf16) << s.name;
  }
}

TEST(Recipe, StageOneEndsBelowTheRateOfItsJunction) {
  const Recipe part2 = shipped("olmo3-7b/stage1-part2");
  EXPECT_NEAR(part2.lr_schedule().lr(part2.last_step()), 3.9325e-5, 1e-9);
  EXPECT_TRUE(part2.init.continue_step);
  EXPECT_EQ(part2.init.step, 596047);
}

TEST(Recipe, DemoIsSmallAndOfTheRightShape) {
  const Recipe demo = shipped("demo");
  const ParameterCounts counts = parameter_counts(demo.model, demo.model.vocab_rows());
  EXPECT_NEAR(static_cast<double>(counts.layers), 4.2e6, 0.1e6);
  EXPECT_GE(demo.run_steps(), 300);
  EXPECT_EQ(demo.model.layer_type(2), LayerType::kSliding);
  EXPECT_EQ(demo.model.layer_type(3), LayerType::kFull);
  EXPECT_EQ(demo.leaves_per_step(), 2);
}

TEST(Recipe, LengthsByStepsTokensAndEpochs) {
  const std::vector<std::string> tokens = {"train.steps=", "train.tokens=4097",
                                           "schedule.warmup_steps=1"};
  EXPECT_EQ(shipped("demo", tokens).run_steps(), 3);  // 2048 a step, rounded up
  const std::vector<std::string> epochs = {"train.steps=", "train.epochs=2",
                                           "schedule.warmup_steps=1"};
  EXPECT_EQ(shipped("demo", epochs).run_steps(43), 20);  // 10 full batches an epoch
  EXPECT_THROW(static_cast<void>(shipped("demo", epochs).run_steps()), Error);
  EXPECT_THROW(static_cast<void>(shipped("demo", epochs).run_steps(3)), Error);
  EXPECT_EQ(shipped("demo", {"train.stop_at=7"}).last_step(), 7);
  EXPECT_EQ(shipped("demo", {"train.stop_at=7000"}).last_step(), 600);
}

TEST(Recipe, RangesOfStepsToSkipIncludeBothEnds) {
  const Recipe recipe = shipped("demo", {"train.steps_to_skip=[[3, 4], [9, 9]]"});
  EXPECT_FALSE(recipe.passes_over(2));
  EXPECT_TRUE(recipe.passes_over(3));
  EXPECT_TRUE(recipe.passes_over(4));
  EXPECT_FALSE(recipe.passes_over(5));
  EXPECT_TRUE(recipe.passes_over(9));
}

TEST(Recipe, RefusesWhatDoesNotFitTogether) {
  EXPECT_HAS(error_of("demo", {"batch.tokens=2048"}), "not both");
  EXPECT_HAS(error_of("demo", {"batch.instances=", "batch.tokens=1000"}), "multiple of");
  EXPECT_HAS(error_of("demo", {"batch.instances="}), "set batch.instances or batch.tokens");
  EXPECT_HAS(error_of("demo", {"batch.microbatch=3"}),
             "command line: batch.microbatch = 3: must divide");
  EXPECT_HAS(error_of("demo", {"data.sequence_length=1024"}), "model.context_length");
  EXPECT_HAS(error_of("demo", {"train.tokens=5"}), "exactly one");
  EXPECT_HAS(error_of("demo", {"train.steps_to_skip=[[4, 3]]"}), "before it starts");
  EXPECT_HAS(error_of("demo", {"init.step=3"}), "init.from");
  EXPECT_HAS(error_of("demo", {"cpu.isa=avx9"}), "avx2");
  EXPECT_HAS(error_of("demo", {"model.vocab_size=100278"}), "data.token_type");
  EXPECT_HAS(error_of("demo", {"schedule.warmup_steps=600"}), "do not fit before the horizon");
  for (const char* steps :
       {"0", "3-2", "3-", "-3", "a", "1-2-3", "1 - 2", "99999999999999999999"}) {
    EXPECT_HAS(error_of("demo", {concat("profile.steps=", steps)}), "range of steps") << steps;
  }
  EXPECT_HAS(error_of("demo", {"profile.first_step=3"}), "use profile.steps");
  EXPECT_HAS(error_of("demo", {"data.files=[\"a.npy\"]"}), "not both");
  EXPECT_HAS(error_of("demo", {"run.name=a/b"}), "must name a folder");
  EXPECT_HAS(error_of("demo", {"run.name="}), "must name a folder");
  EXPECT_HAS(error_of("demo", {"optim.lrr=1"}), "did you mean 'optim.lr'?");
}

TEST(Recipe, ResumeAllowsBenignKeysOnly) {
  const Recipe saved = shipped("demo");
  const auto only = [&](const std::string& override) {
    const auto found = resume_differences(saved, shipped("demo", {override}));
    EXPECT_EQ(found.size(), 1U) << override;
    return !found.empty() && found[0].benign;
  };
  for (const char* benign : {"metrics.interval=9", "checkpoint.interval=9", "run.dir=x",
                             "cpu.threads=1", "train.remat=full", "train.precision=fp32",
                             "data.prefetch=0", "train.stop_at=9", "eval.interval=1"}) {
    EXPECT_TRUE(only(benign)) << benign;
  }
  for (const char* other : {"optim.lr=1e-3", "data.seed=1", "batch.instances=8", "model.d_ff=512",
                            "schedule.warmup_steps=1", "optim.skip_step.sigma=5",
                            "train.steps_to_skip=[[1, 2]]", "data.mix=other", "init.seed=3"}) {
    EXPECT_FALSE(only(other)) << other;
  }
}

TEST(Recipe, LengthMayChangeOnResumeOnlyWhenTheRateDoesNotHangOnIt) {
  const auto benign = [](const std::vector<std::string>& common) {
    std::vector<std::string> longer = common;
    longer.emplace_back("train.steps=400");
    const auto found = resume_differences(shipped("demo", common), shipped("demo", longer));
    return found.size() == 1 && found[0].benign;
  };
  EXPECT_FALSE(benign({}));
  EXPECT_TRUE(benign({"schedule.horizon_steps=1000"}));
  EXPECT_TRUE(benign({"schedule.kind=constant"}));
  EXPECT_FALSE(benign({"schedule.kind=wsd", "schedule.decay_steps=100"}));
}

}  // namespace
}  // namespace lockstep
