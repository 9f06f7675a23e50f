// Bad input of every kind: one line that says what, where and what to do; the right exit code.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "tests/tiny_run.h"

namespace lockstep {
namespace {

namespace stdfs = std::filesystem;

class Refusal : public TinyRun {
 protected:
  // One line "lockstep: error: ..." on stderr that holds every one of the words.
  static void expect_refused(const ProcessResult& result, int exit_code,
                             const std::vector<std::string>& words) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    const auto begin = result.err.find("lockstep: error: ");
    ASSERT_NE(begin, std::string::npos) << result.err;
    const std::string message = result.err.substr(begin);
    EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
    for (const auto& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << "no \"" << word << "\" in: " << message;
    }
  }
};

TEST_F(Refusal, RecipeKeysAndValues) {
  expect_refused(train("r", {"optim.lrr=1"}), 2, {"optim.lrr", "optim.lr"});
  expect_refused(train("r", {"optim.lr=fast"}), 2, {"optim.lr", "fast"});
  expect_refused(train("r", {"train.steps=0"}), 2, {"train.steps", "0"});
  expect_refused(train("r", {"train.steps=7x"}), 2, {"train.steps"});
  expect_refused(train("r", {"batch.microbatch=4"}), 2, {"microbatch"});
  expect_refused(train("r", {"train.precision=fp8"}), 2, {"fp8", "bf16"});
  expect_refused(train("r", {"cpu.isa=sse"}), 2, {"cpu.isa", "avx2"});
  expect_refused(run_lockstep(directory_, {"train", "none.toml"}), 2, {"none.toml"});
  write("broken.toml", "[model\n");
  expect_refused(run_lockstep(directory_, {"train", "broken.toml"}), 2, {"broken.toml:1"});
  expect_refused(run_lockstep(directory_, {"trian", "tiny.toml"}), 2, {"trian", "train"});
  EXPECT_FALSE(stdfs::exists(path("r/metrics.jsonl")));
}

TEST_F(Refusal, TokenFilesThatAreMissingEmptyOddOrGrown) {
  const std::string whole = read("data/b.npy");
  stdfs::remove(path("data/b.npy"));
  expect_refused(train("r"), 2, {"b.npy"});
  write("data/b.npy", "");
  expect_refused(train("r"), 3, {"b.npy"});
  write("data/b.npy", whole + "x");
  expect_refused(train("r"), 3, {"b.npy"});
  write("data/b.npy", whole);
  train_well("r", {"train.stop_at=2"});
  write("data/b.npy", whole + whole);
  expect_refused(train("r"), 3, {"b.npy"});
  write("data/b.npy", whole.substr(0, whole.size() / 2 / 4 * 4));
  expect_refused(train("r"), 3, {"b.npy"});
}

TEST_F(Refusal, TokenIdsOutsideTheVocabulary) {
  std::string bytes = read("data/a.npy");
  bytes[4001] = 1;  // the token at byte 4000 becomes 256 and more
  write("data/a.npy", bytes);
  expect_refused(train("r"), 3, {"a.npy", "4000"});
  bytes[4001] = 0;
  bytes[4000] = 110;  // a padding row of the embedding, not a token
  write("data/a.npy", bytes);
  expect_refused(train("r"), 3, {"a.npy", "110"});
}

TEST_F(Refusal, TooFewInstancesForABatch) {
  expect_refused(train("r", {"batch.instances=1000", "batch.microbatch=1"}), 3, {"1000"});
}

TEST_F(Refusal, ASecondProcessOnTheSameRun) {
  const std::vector<std::string> longer = {"train.steps=100000"};
  Process first(directory_, arguments("r", longer));
  while (first.running() && read("r/metrics.jsonl").empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  expect_refused(train("r", longer), 2, {"another process", "pid"});
  first.signal(SIGKILL);
  first.wait();
  // The lock of a dead process does not hold.
  train_well("r", {"train.steps=100000", "train.stop_at=1"});
}

TEST_F(Refusal, AChangedRecipeUnlessForkedOnPurpose) {
  train_well("r", {"train.stop_at=8", "checkpoint.keep_last=0"});
  expect_refused(train("r", {"optim.lr=1e-3"}), 2, {"optim.lr", "0.003", "0.001", "fork_from"});
  expect_refused(train("r", {"model.d_model=64"}), 2, {"model.d_model"});
  expect_refused(train("r", {"data.seed=1"}), 2, {"data.seed"});
  expect_refused(train("r", {"optim.lr=1e-3", "run.fork_from=7"}), 2, {"7"});
  train_well("r", {"metrics.interval=5", "cpu.threads=1", "checkpoint.keep_last=0",
                   "train.stop_at=9"});  // benign
  const std::vector<std::string> fork = {"optim.lr=1e-3", "run.fork_from=4"};
  train_well("r", fork);
  EXPECT_NE(read("r/events.jsonl").find("\"event\":\"fork\""), std::string::npos);
  EXPECT_TRUE(stdfs::exists(path("r/checkpoints/step-00000008.before-fork-4")));
  EXPECT_EQ(steps_of("r").size(), 20U);
  const std::string digest = digest_of("r");
  train_well("r", fork);  // the same command line does not fork again
  EXPECT_EQ(digest_of("r"), digest);
}

TEST_F(Refusal, DamagedCheckpointsArePassedOverOrRefused) {
  train_well("whole");
  train_well("r", {"train.stop_at=12"});
  corrupt_byte("r/checkpoints/step-00000012/model.safetensors", 3000);
  const ProcessResult result = train("r");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE((result.out + result.err).find("damaged"), std::string::npos);
  expect_same_run("whole", "r");
  for (const char* step : {"16", "20"}) {
    corrupt_byte(concat("r/checkpoints/step-000000", step, "/optimizer.safetensors"), 5000);
  }
  expect_refused(run_lockstep(directory_, {"checkpoint", "digest", "r"}), 3,
                 {"optimizer.safetensors"});
  EXPECT_EQ(run_lockstep(directory_, {"checkpoint", "verify", "r"}).exit_code, 3);
  expect_refused(train("from", {"init.from=r/checkpoints/step-00000020"}), 3,
                 {"optimizer.safetensors"});
}

TEST_F(Refusal, MissingFilesOfACheckpoint) {
  train_well("r", {"train.stop_at=4"});
  stdfs::remove(path("r/checkpoints/step-00000004/optimizer.safetensors"));
  expect_refused(train("r"), 3, {"optimizer.safetensors"});
}

TEST_F(Refusal, StepsThatAreNotFiniteAbortTheRunAndKeepItsCheckpoints) {
  const auto result =
      train("r", {"optim.lr=10", "optim.grad_clip=0", "optim.weight_decay=10",
                  "schedule.warmup_steps=0", "train.steps=400", "train.max_skipped_in_row=3",
                  "optim.skip_step.sigma=0.001", "optim.skip_step.window=4"});
  expect_refused(result, 4, {"skipped", "train.max_skipped_in_row"});
  EXPECT_EQ(run_lockstep(directory_, {"checkpoint", "verify", "r"}).exit_code, 0);
}

TEST_F(Refusal, DirectoriesThatCannotBeWritten) {
  write("file", "");
  expect_refused(train("file/run"), 2, {"file"});
  expect_refused(train(std::string(5000, 'x')), 2, {"xxx"});
}

TEST_F(Refusal, ARunDirectoryThatIsRemovedWhileTraining) {
  Process process(directory_, arguments("r", {"train.steps=100000"}));
  while (process.running() && read("r/metrics.jsonl").empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  stdfs::rename(path("r"), path("gone"));
  expect_refused(process.wait(), 5, {"r/checkpoints", "is gone"});
}

TEST_F(Refusal, OddButLegalDirectoryNames) {
  for (const std::string run : {"with space", "\xc3\xbcml\xc3\xa4ut", "new\nline"}) {
    // A run.dir on the command line is a TOML value; a literal newline needs quoting.
    const std::string value = run == "new\nline" ? "\"new\\nline\"" : run;
    const ProcessResult result =
        run_lockstep(directory_, {"train", "tiny.toml", "run.dir=" + value, "train.stop_at=1"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(stdfs::exists(path(run + "/metrics.jsonl"))) << run;
  }
}

TEST_F(Refusal, JsonModeStillGivesOneDocument) {
  auto args = arguments("r", {"optim.lrr=1"});
  args.emplace_back("--json");
  const ProcessResult result = run_lockstep(directory_, args);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.out.find("\"exit_code\": 2"), std::string::npos) << result.out;
}

TEST_F(TinyRun, PassedOverStepsCountButTrainNothing) {
  const std::string key = "train.steps_to_skip=[[5, 6], [20, 20]]";
  train_well("whole", {key});
  train_well("split", {key, "train.stop_at=5"});
  train_well("split", {key});
  expect_same_run("whole", "split");
  const auto steps = steps_of("whole");
  EXPECT_EQ(steps.size(), 20U);
  EXPECT_EQ(steps.at(5).substr(0, 8), "nullnull");
  train_well("plain");
  EXPECT_EQ(steps.at(4), steps_of("plain").at(4));
  EXPECT_NE(steps.at(7), steps_of("plain").at(7));
}

TEST_F(TinyRun, AStageStartsFromAnotherWithOrWithoutItsMoments) {
  train_well("one");
  const std::vector<std::string> stage = {"init.from=one", "data.seed=1337", "train.steps=4",
                                          "schedule.kind=linear", "schedule.warmup_steps=0"};
  train_well("with", stage);
  auto without_moments = stage;
  without_moments.emplace_back("init.moments=false");
  train_well("without", without_moments);
  const auto with = steps_of("with");
  const auto without = steps_of("without");
  ASSERT_EQ(with.size(), 4U);            // a fresh step counter
  EXPECT_EQ(with.at(1), without.at(1));  // the same weights: the same first loss
  EXPECT_NE(with.at(2), without.at(2));
  // Going on with the counter is the same run.
  train_well("continued", {"init.from=one", "init.step=16", "init.continue_step=true"});
  EXPECT_EQ(digest_of("continued"), digest_of("one"));
  // The stage resumes from its own checkpoint, not from init.from.
  train_well("with", {"init.from=one", "data.seed=1337", "train.steps=4", "schedule.kind=linear",
                      "schedule.warmup_steps=0"});
  EXPECT_EQ(steps_of("with"), with);
}

TEST_F(TinyRun, AClosedPipeDoesNotStopTheTraining) {
  const std::string command = concat("cd '", directory_, "' && '", LOCKSTEP_BINARY_DIR,
                                     "/lockstep' train tiny.toml run.dir=r 2>&1 | true");
  EXPECT_EQ(std::system(command.c_str()), 0);
  for (int i = 0; i < 300 && steps_of("r").size() < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(steps_of("r").size(), 20U);
}

}  // namespace
}  // namespace lockstep
