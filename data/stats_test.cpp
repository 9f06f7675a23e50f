#include "data/stats.h"

#include <gtest/gtest.h>

#include <cmath>

#include "data/scratch_directory.h"

namespace lockstep {
namespace {

TEST(MixStats, CountsByLabelWhateverTheThreads) {
  ScratchDirectory directory;
  const auto write = [&](const char* name, const std::vector<std::uint32_t>& ids) {
    directory.write_values<std::uint32_t>(name, ids);
  };
  write("a.npy", {1, 1, 9, 2, 9});
  write("b.npy", {5, 5, 5, 9});
  write("c.npy", {1, 9, 9});
  const std::vector<MixEntry> mix = {{"x", "a.npy"}, {"y", "b.npy"}, {"x", "c.npy"}};
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const auto stats =
        mix_stats(FileSystem::real(), {directory.path(), TokenWidth::k32, 9, {10, 10}}, mix, pool);
    ASSERT_EQ(stats.size(), 2U);
    EXPECT_EQ(stats[0].label, "x");
    EXPECT_EQ(stats[0].files, 2U);
    EXPECT_EQ(stats[0].tokens, 8U);
    EXPECT_EQ(stats[0].documents, 4U);
    EXPECT_EQ(stats[0].shortest, 1U);
    EXPECT_EQ(stats[0].median, 2U);
    EXPECT_EQ(stats[0].longest, 3U);
    EXPECT_EQ(stats[0].smallest_id, 1U);
    EXPECT_EQ(stats[0].largest_id, 9U);
    EXPECT_EQ(stats[0].distinct_ids, 3U);
    // ids 1, 2, 9 with shares 3/8, 1/8, 4/8.
    EXPECT_NEAR(stats[0].unigram_entropy,
                -(0.375 * std::log(0.375) + 0.125 * std::log(0.125) + 0.5 * std::log(0.5)), 1e-15);
    // 5, 9 with shares 3/4, 1/4.
    EXPECT_NEAR(stats[1].unigram_entropy, -(0.75 * std::log(0.75) + 0.25 * std::log(0.25)), 1e-15);
  }
}

}  // namespace
}  // namespace lockstep
