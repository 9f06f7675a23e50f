#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(ThreadPool, RunsEveryIndexOnceForAnyThreadCount) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const std::int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<int> hits(static_cast<std::size_t>(count), 0);
      pool.parallel_for(count, [&](std::int64_t i, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++hits[static_cast<std::size_t>(i)];
      });
      EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), std::int64_t{0}), count);
      for (const int h : hits) EXPECT_EQ(h, 1);
    }
  }
}

TEST(ThreadPool, ManyShortLoopsInARow) {
  ThreadPool pool(4);
  std::vector<std::int64_t> sums(16, 0);
  for (int round = 0; round < 5000; ++round) {
    pool.parallel_for(16, [&](std::int64_t i, int) { sums[static_cast<std::size_t>(i)] += i; });
  }
  for (std::int64_t i = 0; i < 16; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)], i * 5000);
}

TEST(ThreadPool, ThrowsWhatATaskThrewAndStaysUsable) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(10,
                                 [](std::int64_t i, int) {
                                   if (i == 3) fail(ErrorKind::kData, "three");
                                 }),
               Error);
  std::atomic<int> ran{0};
  pool.parallel_for(10, [&](std::int64_t, int) { ++ran; });
  EXPECT_EQ(ran, 10);
}

TEST(ThreadPool, RefusesZeroThreads) { EXPECT_THROW(ThreadPool(0), Error); }

}  // namespace
}  // namespace lockstep
