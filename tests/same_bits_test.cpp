// One recipe, one result: separate processes' files compared on bits.

#include <csignal>
#include <thread>

#include "base/error.h"
#include "tests/tiny_run.h"

namespace lockstep {
namespace {

TEST_F(TinyRun, SameBitsForAnyThreadCountPrecisionAndInstructionSet) {
  for (const std::string precision : {"fp32", "bf16"}) {
    for (const std::string isa : {"auto", "avx2"}) {
      const std::string a = concat("a-", precision, "-", isa);
      const std::string b = concat("b-", precision, "-", isa);
      const std::vector<std::string> same = {"train.precision=" + precision, "cpu.isa=" + isa};
      auto one = same;
      one.emplace_back("cpu.threads=1");
      auto two = same;
      two.emplace_back("cpu.threads=2");
      train_well(a, one);
      train_well(b, two);
      expect_same_run(a, b);
    }
  }
}

TEST_F(TinyRun, SameBitsForAnyThreadCountAtAnyBatchAndLength) {
  for (int microbatch = 1; microbatch <= 8; ++microbatch) {
    const std::vector<std::string> shape = {concat("batch.instances=", 2 * microbatch),
                                            concat("batch.microbatch=", microbatch),
                                            concat("data.sequence_length=", 7 + 9 * microbatch),
                                            "train.steps=5", "model.context_length=128"};
    auto one = shape;
    one.emplace_back("cpu.threads=1");
    auto three = shape;
    three.emplace_back("cpu.threads=3");
    train_well(concat("one", microbatch), one);
    train_well(concat("three", microbatch), three);
    expect_same_run(concat("one", microbatch), concat("three", microbatch));
  }
}

TEST_F(TinyRun, SameBitsUnderEveryRematerialisationAndPrefetch) {
  train_well("plain");
  for (const std::string remat : {"mlp", "attention", "full"}) {
    train_well(remat, {"train.remat=" + remat});
    expect_same_run("plain", remat);
  }
  train_well("offloaded", {"train.offload=disk"});
  expect_same_run("plain", "offloaded");
  for (const std::string depth : {"0", "1", "7"}) {
    train_well("prefetch" + depth, {"data.prefetch=" + depth});
    expect_same_run("plain", "prefetch" + depth);
  }
}

TEST_F(TinyRun, SameBitsWhetherAWeightOfProductsIsUpdatedWholeOrInParts) {
  // Without decay the lists name nothing but where the optimiser's ranges end.
  train_well("whole", {"optim.weight_decay=0"});
  train_well("parts", {"optim.weight_decay=0",
                       "optim.no_decay=[\"model.layers.0.self_attn.k_proj.weight\", "
                       "\"model.layers.1.mlp.up_proj.weight\", \"lm_head.weight\"]"});
  expect_same_run("whole", "parts");
  train_well("decayed");
  EXPECT_NE(digest_of("decayed"), digest_of("whole"));
}

TEST_F(TinyRun, SameBitsWhenStoppedAndResumedAtEveryStep) {
  train_well("whole");
  for (int step = 1; step < 20; ++step) {
    const std::string run = concat("stop", step);
    train_well(run, {concat("train.stop_at=", step)});
    if (step < 19) train_well(run, {concat("train.stop_at=", step + 1)});  // twice in a row
    train_well(run);
    expect_same_run("whole", run);
  }
}

TEST_F(TinyRun, SameBitsWithDocumentMaskFilterAndOtherOrders) {
  for (const std::string key : {"data.document_mask=true", "data.filter.enabled=true",
                                "data.order=olmo-core", "data.order=sequential"}) {
    train_well("whole" + key, {key, "cpu.threads=2"});
    train_well("split" + key, {key, "cpu.threads=1", "train.stop_at=17"});
    train_well("split" + key, {key, "cpu.threads=1"});
    expect_same_run("whole" + key, "split" + key);
  }
}

TEST_F(TinyRun, PackedDocumentsTrainAndResumeToTheSameBits) {
  const std::vector<std::string> keys = {"data.packed=true", "data.document_mask=true"};
  train_well("whole", keys);
  auto stop = keys;
  stop.emplace_back("train.stop_at=9");
  train_well("split", stop);
  train_well("split", keys);
  expect_same_run("whole", "split");
  train_well("cut", {"data.document_mask=true"});
  EXPECT_NE(steps_of("whole").at(1), steps_of("cut").at(1));
}

TEST_F(TinyRun, EvaluationDuringTheRunChangesNothing) {
  train_well("plain");
  train_well("watched", {"eval.interval=3", "eval.mix=data/held.mix", "eval.batch=1"});
  EXPECT_EQ(steps_of("plain"), steps_of("watched"));
  EXPECT_EQ(digest_of("plain"), digest_of("watched"));
  const std::string first = read("watched/evals/step-00000003.json");
  EXPECT_NE(first.find("\"held\""), std::string::npos) << first;
}

TEST_F(TinyRun, SigtermSavesAndASecondRunGoesOnToTheSameEnd) {
  train_well("whole", {"train.steps=400", "checkpoint.interval=0"});
  const auto arguments_of_run = arguments("stopped", {"train.steps=400", "checkpoint.interval=0"});
  int stops = 0;
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGTERM}) {
    Process process(directory_, arguments_of_run);
    const std::string metrics = read("stopped/metrics.jsonl");
    while (process.running() && read("stopped/metrics.jsonl").size() < metrics.size() + 5000) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    process.signal(number);
    const ProcessResult result = process.wait();
    if (result.exit_code == 0) break;  // it was done before the signal came
    EXPECT_EQ(result.exit_code, 75) << result.err;
    ++stops;
  }
  EXPECT_GE(stops, 1);
  train_well("stopped", {"train.steps=400", "checkpoint.interval=0"});
  expect_same_run("whole", "stopped");
}

}  // namespace
}  // namespace lockstep
