#include "data/step_plan.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/error.h"
#include "data/golden_file.h"

namespace lockstep {
namespace {

std::vector<std::uint64_t> batch_of(const StepPlan& plan, std::uint64_t step) {
  std::vector<std::uint64_t> out(plan.spec().batch);
  plan.entries(step, 0, out);
  return out;
}

TEST(StepPlan, EqualsTheBatchesOfOlmoCoresLoader) {
  const Json fsl = golden_file("olmo_core_misc.json").at("fsl");
  const auto global = fsl.at("global_indices").get<std::vector<std::uint64_t>>();
  for (std::uint64_t seed : {0U, 1U, 42U, 34521U}) {
    const StepPlan plan(FileSystem::real(), {OrderKind::kOlmoCore, seed, 36, 4, ""});
    if (batch_of(plan, 0)[0] != global[0] || batch_of(plan, 0)[1] != global[1]) continue;
    std::vector<std::uint64_t> all;
    std::vector<std::uint64_t> rank0;  // strided inside the batch, 2 ranks
    for (std::uint64_t k = 0; k < plan.steps_per_epoch(); ++k) {
      const auto batch = batch_of(plan, k);
      all.insert(all.end(), batch.begin(), batch.end());
      rank0.insert(rank0.end(), {batch[0], batch[2]});
    }
    EXPECT_EQ(all, global);
    EXPECT_EQ(rank0, fsl.at("local_rank0").get<std::vector<std::uint64_t>>());
    return;
  }
  FAIL() << "no seed gives the golden order";
}

// Public report: 10 instances, batch 2, resumed in epoch 1; epoch 2 missed instances.
TEST(StepPlan, EveryEpochHoldsEveryInstanceOnceWhereverOneStarts) {
  for (const auto kind : {OrderKind::kFeistel, OrderKind::kOlmoCore, OrderKind::kSequential}) {
    const StepPlan whole(FileSystem::real(), {kind, 7, 10, 2, ""});
    const StepPlan resumed(FileSystem::real(), {kind, 7, 10, 2, ""});
    std::set<std::uint64_t> second;
    for (std::uint64_t k = 3; k < 10; ++k) {
      const auto batch = batch_of(resumed, k);
      EXPECT_EQ(batch, batch_of(whole, k));
      EXPECT_EQ(resumed.epoch_of(k), k < 5 ? 1U : 2U);
      if (k >= 5) second.insert(batch.begin(), batch.end());
    }
    EXPECT_EQ(second.size(), 10U);
  }
}

TEST(StepPlan, EpochsDifferAndTheTailIsDropped) {
  const StepPlan plan(FileSystem::real(), {OrderKind::kFeistel, 7, 107, 10, ""});
  EXPECT_EQ(plan.steps_per_epoch(), 10U);
  EXPECT_NE(batch_of(plan, 0), batch_of(plan, 10));
  std::multiset<std::uint64_t> seen;
  for (std::uint64_t k = 0; k < 10; ++k) {
    for (const auto id : batch_of(plan, k)) seen.insert(id);
  }
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(std::set<std::uint64_t>(seen.begin(), seen.end()).size(), 100U);
}

TEST(StepPlan, PartsOfABatchAreSlicesOfIt) {
  const StepPlan plan(FileSystem::real(), {OrderKind::kFeistel, 7, 64, 16, ""});
  const auto whole = batch_of(plan, 3);
  for (const std::uint64_t ranks : {1U, 2U, 4U}) {
    std::vector<std::uint64_t> joined;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      std::vector<std::uint64_t> part(16 / ranks);
      plan.entries(3, rank * part.size(), part);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    EXPECT_EQ(joined, whole);
  }
}

// Public report: 3 samples with a batch of 4 gave no batches and loss 0 for ever.
TEST(StepPlan, RefusesFewerInstancesThanABatch) {
  try {
    const StepPlan plan(FileSystem::real(), {OrderKind::kFeistel, 7, 3, 4, ""});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(e.what()).find("3 instances do not fill one batch of 4"),
              std::string::npos);
  }
  EXPECT_THROW(StepPlan(FileSystem::real(), {OrderKind::kFeistel, 7, 3, 0, ""}), Error);
}

}  // namespace
}  // namespace lockstep
