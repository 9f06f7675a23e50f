#include "data/audit.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(PlanAudit, PassesEveryOrderAndCountsTheTail) {
  const std::vector<std::uint64_t> ranks = {1, 2, 4, 8};
  for (const auto kind : {OrderKind::kFeistel, OrderKind::kOlmoCore, OrderKind::kSequential}) {
    const StepPlan plan(FileSystem::real(), {kind, 34521, 1003, 8, ""});
    for (const std::uint64_t epoch : {1U, 2U, 3U}) {
      const auto audit = audit_epoch(plan, epoch, ranks);
      EXPECT_TRUE(audit.ok()) << audit.finding;
      EXPECT_EQ(audit.seen_once, 1000U);
      EXPECT_EQ(audit.missed, 3U);
      EXPECT_EQ(audit.dropped_tail, 3U);
    }
  }
  const StepPlan plan(FileSystem::real(), {OrderKind::kFeistel, 1, 64, 8, ""});
  const std::vector<std::uint64_t> three = {3};
  EXPECT_THROW(static_cast<void>(audit_epoch(plan, 1, three)), Error);
}

// The failure that the audit exists for: a sampler that gives each rank its part, and a loader
// around it that takes every N-th of that again. Over one nominal epoch 1 - 2/e = 26.4% of the
// instances are seen twice or more and 1/e = 36.8% never (8 ranks: binomial, 26.3% and 34.4%).
TEST(CoverageCounter, ShowsShardingAppliedTwice) {
  constexpr std::uint64_t kRanks = 8;
  constexpr std::uint64_t kInstances = 80000;
  constexpr std::uint64_t kShare = kInstances / kRanks;
  std::vector<std::unique_ptr<const Order>> epochs;
  for (std::uint64_t epoch = 1; epoch <= kRanks; ++epoch) {
    epochs.push_back(
        make_order(FileSystem::real(), {OrderKind::kFeistel, 3, epoch, kInstances, ""}));
  }
  CoverageCounter coverage(kInstances);
  for (std::uint64_t rank = 0; rank < kRanks; ++rank) {
    for (std::uint64_t k = 0; k < kShare; ++k) {
      const std::uint64_t position = k * kRanks + rank;  // strided again
      coverage.add(epochs[position / kShare]->instance(rank * kShare + position % kShare));
    }
  }
  const double n = kInstances;
  EXPECT_NEAR(static_cast<double>(coverage.repeated()) / n, 0.2636, 0.01);
  EXPECT_NEAR(static_cast<double>(coverage.missed()) / n, 0.3436, 0.01);
  EXPECT_EQ(coverage.missed() + coverage.seen_once() + coverage.repeated(), kInstances);
  EXPECT_THROW(coverage.add(kInstances), Error);
}

}  // namespace
}  // namespace lockstep
