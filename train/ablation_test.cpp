#include "train/ablation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

using Strings = std::vector<std::string>;

TEST(SplitOverrides, CutsAtCommasOutsideListsAndQuotes) {
  EXPECT_EQ(split_overrides("model.n_heads=8,model.head_dim=32"),
            (Strings{"model.n_heads=8", "model.head_dim=32"}));
  EXPECT_EQ(split_overrides("model.layer_types=[\"a\", \"b\"],run.name='x,y'"),
            (Strings{"model.layer_types=[\"a\", \"b\"]", "run.name='x,y'"}));
  EXPECT_THROW(static_cast<void>(split_overrides("")), Error);
  EXPECT_THROW(static_cast<void>(split_overrides("a.b=1,,c.d=2")), Error);
}

TEST(Turns, TurnRoundEveryTimeAndEndAtTheLastStep) {
  std::vector<std::pair<std::size_t, std::int64_t>> found;
  for (const Turn& turn : turns(2, 25, 10)) found.emplace_back(turn.variant, turn.last_step);
  EXPECT_EQ(found, (std::vector<std::pair<std::size_t, std::int64_t>>{
                       {0, 10}, {1, 10}, {1, 20}, {0, 20}, {0, 25}, {1, 25}}));
}

class Variants : public testing::Test {
 protected:
  void SetUp() override {
    recipe_ =
        (std::filesystem::temp_directory_path() / concat("lockstep-ablation-", ::getpid(), ".toml"))
            .string();
    write_file_atomic(FileSystem::real(), recipe_,
                      std::string_view("[model]\npreset = \"olmo3-1m\"\n[data]\nmix = \"a\"\n"
                                       "sequence_length = 64\n[batch]\ninstances = 2\n"
                                       "[train]\nsteps = 30\n[eval]\ninterval = 10\n"));
  }
  void TearDown() override { std::filesystem::remove(recipe_); }
  [[nodiscard]] std::string refusal(const std::vector<Strings>& overrides) const {
    try {
      static_cast<void>(make_variants(recipe_, {}, overrides, "out"));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      return error.what();
    }
    return "";
  }
  std::string recipe_;
};

TEST_F(Variants, AreRunsOfTheirOwnThatSaveOnlyBetweenTurns) {
  const Strings common = {"optim.lr=1e-3"};
  const std::vector<Strings> overrides = {{}, {"model.n_layers=2", "init.seed=1"}};
  const auto variants = make_variants(recipe_, common, overrides, "out");
  ASSERT_EQ(variants.size(), 2U);
  EXPECT_EQ(variants[0].label, "recipe");
  EXPECT_EQ(variants[1].label, "model.n_layers=2 init.seed=1");
  EXPECT_EQ(variants[1].recipe.directory(), "out/variant-2");
  EXPECT_EQ(variants[1].recipe.model.n_layers, 2);
  for (const auto& variant : variants) {
    EXPECT_EQ(variant.recipe.optim.lr, 1e-3);
    EXPECT_EQ(variant.recipe.checkpoint.interval, 0);
    EXPECT_EQ(variant.recipe.eval.interval, 0);
  }
}

TEST_F(Variants, MustSeeTheSameBatchesAndDiffer) {
  EXPECT_NE(refusal({{}, {"data.seed=7"}}).find("data.seed"), std::string::npos);
  EXPECT_NE(refusal({{}, {"batch.instances=4"}}).find("batch.instances"), std::string::npos);
  EXPECT_NE(refusal({{}, {"train.steps=31"}}).find("train.steps"), std::string::npos);
  EXPECT_NE(refusal({{}, {"model.vocab_size=100300"}}).find("model.vocab_size"), std::string::npos);
  EXPECT_NE(refusal({{"optim.lr=1e-3"}, {"optim.lr=1e-3"}}).find("the same run"),
            std::string::npos);
  EXPECT_NE(refusal({{}}).find("two variants"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
