// SIGKILL at any moment costs at most the steps since the last checkpoint.

#include <csignal>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/rng.h"
#include "checkpoint/paths.h"
#include "tests/tiny_run.h"

namespace lockstep {
namespace {

class KilledRun : public TinyRun {
 protected:
  bool saving(const std::string& run) const {
    std::error_code gone;  // the directory changes under our eyes
    for (auto entry = std::filesystem::directory_iterator(path(run + "/checkpoints"), gone);
         !gone && entry != std::filesystem::directory_iterator(); entry.increment(gone)) {
      if (paths::is_unfinished(entry->path().filename().string())) return true;
    }
    return false;
  }
};

TEST_F(KilledRun, FiftyKillsTwentyOfThemInsideASaveLoseNothing) {
  const std::vector<std::string> overrides = {"train.steps=3000", "checkpoint.interval=2",
                                              "model.vocab_size=20000",
                                              "metrics.tensorboard=false"};
  const CounterRng rng(5, "moments");
  int kills = 0;
  int inside = 0;
  for (std::uint64_t round = 0; kills < 50; ++round) {
    ASSERT_LT(round, 200U);
    Process process(directory_, arguments("killed", overrides));
    const bool aim_at_save = inside < 25;
    const auto delay = std::chrono::microseconds(rng.u64(round) % 300000);
    std::this_thread::sleep_for(delay + std::chrono::milliseconds(100));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (aim_at_save && process.running() && !saving("killed") &&
           std::chrono::steady_clock::now() < deadline) {
    }
    process.signal(SIGSTOP);  // so that what is seen is what was killed
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    inside += saving("killed") ? 1 : 0;
    process.signal(SIGKILL);
    const ProcessResult result = process.wait();
    ASSERT_EQ(result.exit_code, 128 + SIGKILL) << result.err << result.out;
    ++kills;
  }
  EXPECT_GE(inside, 20);
  // Every step that was trained again came out as it had been logged.
  const std::string events = read("killed/events.jsonl");
  EXPECT_NE(events.find("\"event\":\"replay\""), std::string::npos);
  EXPECT_EQ(events.find("\"different\":1"), std::string::npos) << events;
  const auto steps = steps_of("killed");
  ASSERT_FALSE(steps.empty());
  const auto last = steps.rbegin()->first + 2;
  auto stop = overrides;
  stop.push_back(concat("train.stop_at=", last));
  train_well("killed", stop);
  train_well("whole", stop);
  expect_same_run("whole", "killed");
}

}  // namespace
}  // namespace lockstep
