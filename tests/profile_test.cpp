// The timeline of a run's steps, written by the real binary.

#include <set>

#include "base/json.h"
#include "tests/tiny_run.h"

namespace lockstep {
namespace {

TEST_F(TinyRun, AProfileHoldsEveryPartOfItsStepsAndChangesNoBit) {
  const std::vector<std::string> same = {"eval.interval=4", "eval.mix=data/held.mix",
                                         "eval.batch=1"};
  train_well("plain", same);
  auto profiled = same;
  profiled.emplace_back("profile.steps=3-5");
  train_well("profiled", profiled);
  expect_same_run("plain", "profiled");

  const Json document = parse_json(read("profiled/profile.json"), "profile.json");
  std::multiset<std::string> names;
  std::set<int> rows;
  for (const Json& event : document["traceEvents"]) {
    if (event["ph"] != "X") continue;
    names.insert(event["name"]);
    rows.insert(event["tid"].get<int>());
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_GE(event["dur"].get<double>(), 0);
  }
  for (const char* each : {"step", "loader wait", "metrics"})
    EXPECT_EQ(names.count(each), 3U) << each;
  // Checkpoints are of every fourth step.
  for (const char* each : {"checkpoint snapshot", "checkpoint write", "evaluation"}) {
    EXPECT_EQ(names.count(each), 1U) << each;
  }
  EXPECT_EQ(names.count("head_loss"), 9U);            // 3 leaves of 3 steps
  EXPECT_EQ(names.count("attention_backward"), 36U);  // 4 layers
  EXPECT_GT(names.count("adamw_step"), 0U);
  EXPECT_EQ(rows, (std::set<int>{1, 2, 3, 4}));
  EXPECT_EQ(document["otherData"]["ops_dropped"], 0);
}

TEST_F(TinyRun, AProfileIsWrittenWhenTheRunEndsAmongItsSteps) {
  train_well("run", {"train.stop_at=2", "profile.steps=2-9"});
  EXPECT_NE(read("run/profile.json").find("\"checkpoint snapshot\""), std::string::npos);
  train_well("none", {"train.stop_at=2"});
  EXPECT_EQ(read("none/profile.json"), "");
}

}  // namespace
}  // namespace lockstep
