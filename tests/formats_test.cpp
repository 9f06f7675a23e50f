// Version 1 of every format stays readable: files that lockstep 0.1.0 wrote, read by this one.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "eval/evaluation_file.h"
#include "report/ablation_file.h"
#include "report/evidence.h"
#include "tests/process.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

namespace stdfs = std::filesystem;

// A copy of the frozen files, so that a run may go on in it.
class FormatsV1 : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = (stdfs::temp_directory_path() / concat("lockstep-formats-", ::getpid())).string();
    stdfs::remove_all(directory_);
    stdfs::copy(LOCKSTEP_SOURCE_DIR "/tests/golden/formats-v1", directory_,
                stdfs::copy_options::recursive);
  }
  void TearDown() override { stdfs::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }
  // What a command prints; it must succeed.
  std::string output_of(const std::vector<std::string>& arguments) const {
    const ProcessResult result = run_lockstep(directory_, arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err << result.out;
    return result.out;
  }

  FileSystem& fs_ = FileSystem::real();
  std::string directory_;
};

TEST_F(FormatsV1, CheckpointVerifiesAndHasItsDigest) {
  EXPECT_NE(output_of({"checkpoint", "verify", "run"}).find("whole"), std::string::npos);
  EXPECT_EQ(output_of({"checkpoint", "digest", "run"}), read("digest.txt"));
}

TEST_F(FormatsV1, RunGoesOnAndItsRecordIsWhole) {
  const Json summary = parse_json(
      output_of({"train", "recipe.toml", "run.dir=run", "sample.interval=0", "--json"}), "train");
  EXPECT_EQ(summary["first_step"], 5);
  EXPECT_EQ(summary["last_step"], 6);
  output_of({"data", "audit", "run"});
  std::vector<std::string> notes;
  const auto curve = read_curve(fs_, path("run/metrics.jsonl"), notes);
  EXPECT_EQ(curve.size(), 6U);
  EXPECT_TRUE(notes.empty());
}

TEST_F(FormatsV1, ModelEvaluatesToTheLossOfItsEvaluationFile) {
  const Evaluation saved = read_evaluation(fs_, path("run/evals/step-00000004.json"));
  EXPECT_EQ(saved.model.step, 4);
  const Json found = parse_json(output_of({"eval", "--heldout", "--model", "run", "--json"}), "e");
  ASSERT_EQ(found["domains"].size(), saved.heldout->domains.size());
  for (std::size_t i = 0; i < saved.heldout->domains.size(); ++i) {
    // Kernels of another instruction set sum in another order: fp32 eps times some terms.
    EXPECT_NEAR(found["domains"][i]["loss"].get<double>(), saved.heldout->domains[i].loss, 1e-5);
  }
}

TEST_F(FormatsV1, TokenizerAndDataAreRead) {
  const Tokenizer tokenizer = Tokenizer::load(fs_, path("tokenizer.json"));
  const Json ids = parse_json(read("ids.jsonl"), "ids.jsonl")["ids"];
  EXPECT_EQ(tokenizer.encode("the birds sang over the hill", Special::kText),
            ids.get<std::vector<std::uint32_t>>());
  const Json stats = parse_json(output_of({"data", "stats", "tokens/mix.txt", "--dtype", "uint16",
                                           "--tokenizer", "tokenizer.json", "--json"}),
                                "stats");
  EXPECT_EQ(stats["labels"][0]["tokens"], 1627);
  EXPECT_EQ(stats["labels"][0]["documents"], 56);
}

TEST_F(FormatsV1, CachedOrderIsTaken) {
  const std::vector<std::string> command = {"data",        "order", "--kind",  "olmo-core",
                                            "--seed",      "7",     "--epoch", "1",
                                            "--instances", "90",    "--cache", "orders"};
  output_of(command);
  // Were it not read, damage would go unseen.
  const std::string name = "orders/global_indices_dataset_size90_epoch1_seed7_v1.npy";
  std::string bytes = read(name);
  bytes[40] = static_cast<char>(bytes[40] ^ 1);
  std::ofstream(path(name), std::ios::binary) << bytes;
  EXPECT_EQ(run_lockstep(directory_, command).exit_code, 3);
}

TEST_F(FormatsV1, EvaluationAblationAndAverageAreRead) {
  const Evaluation evaluation = read_evaluation(fs_, path("evaluation.json"));
  ASSERT_TRUE(evaluation.heldout && evaluation.tasks && evaluation.kl);
  EXPECT_EQ(evaluation.heldout->domains.at(1).loss, 5.5921928053316865);
  EXPECT_EQ(evaluation.heldout->by_document.at(6).ce, 167.59038972854614);
  EXPECT_EQ(evaluation.tasks->at(0).fewshot, 5);
  EXPECT_TRUE(evaluation.tasks->at(0).documents.at(1).acc_norm);
  EXPECT_EQ(evaluation.kl->p99_9, 0.0016762479259021677);
  EXPECT_EQ(evaluation.kl->buckets.at(5).tokens, 111);
  const AblationFile ablation = read_ablation(fs_, path("ablation.json"));
  EXPECT_TRUE(ablation.finished);
  EXPECT_EQ(ablation.ablation.rows.at(1).label, "optim.lr=1e-2");
  EXPECT_EQ(ablation.ablation.rows.at(1).size.parameters, 2314);
  EXPECT_EQ(ablation.ablation.rows.at(1).heldout_delta.n, 7);
  EXPECT_EQ(ablation.ablation.rows.at(1).heldout_delta.interval.low, -0.16102822035688408);
  const Json average = parse_json(read("average.json"), "average.json");
  EXPECT_EQ(average["format"], "lockstep-average");
}

TEST_F(FormatsV1, AnotherVersionIsRefusedNotGuessedAt) {
  std::string text = read("ablation.json");
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 2");
  std::ofstream(path("ablation.json")) << text;
  EXPECT_THROW(static_cast<void>(read_ablation(fs_, path("ablation.json"))), Error);
}

}  // namespace
}  // namespace lockstep
