// The real binary on the real task and request files with the golden tiny model. What the library
// gives is held against the reference in task_golden_test; this is the way there and back through
// files and options.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "io/compressed.h"
#include "tests/process.h"

namespace lockstep {
namespace {

namespace stdfs = std::filesystem;

const std::string kShared = std::string(LOCKSTEP_SOURCE_DIR) + "/../shared";

class EvalGolden : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* part : {"/golden/eval/model/model.safetensors", "/golden/eval/expected.json",
                             "/data/eval/requests", "/data/tokenizer/tokenizer.json"}) {
      if (!stdfs::exists(kShared + part)) GTEST_SKIP() << kShared << part << ": missing";
    }
    directory_ =
        (stdfs::temp_directory_path() / concat("lockstep-eval-golden-", getpid())).string();
    stdfs::create_directories(directory_);
  }
  void TearDown() override {
    if (!directory_.empty()) stdfs::remove_all(directory_);
  }
  [[nodiscard]] ProcessResult eval(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"eval",        "--json",
                                          "--model",     kShared + "/golden/eval/model",
                                          "--tokenizer", kShared + "/data/tokenizer/tokenizer.json",
                                          "--data",      kShared + "/data/eval"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lockstep(directory_, arguments);
  }
  // Samples by task and document.
  std::map<std::pair<std::string, std::size_t>, Json> samples(
      const std::vector<std::string>& more) {
    auto arguments = more;
    const std::string file = directory_ + "/samples.jsonl.zst";
    arguments.insert(arguments.end(), {"--log-samples", file});
    const ProcessResult result = eval(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::map<std::pair<std::string, std::size_t>, Json> all;
    LineReader reader(open_byte_source(FileSystem::real(), file));
    for (std::string line; reader.next(line);) {
      Json json = parse_json(line, file);
      all[{json["task"].get<std::string>(), json["doc"].get<std::size_t>()}] = json;
    }
    return all;
  }

  std::string directory_;
};

void compare(const Json& want, const Json& got) {
  for (const char* key : {"context", "contexts"}) {
    ASSERT_EQ(want.contains(key), got.contains(key)) << key;
    if (want.contains(key)) {
      EXPECT_EQ(got[key], want[key]);
    }
  }
  EXPECT_EQ(got["cont_ids"], want["cont"]);
  EXPECT_EQ(got["ctx_tokens"], want["ctx"]);
  for (const char* key : {"continuations", "choices", "greedy", "gold", "pred_acc", "pred_acc_norm",
                          "pred_acc_bytes"}) {
    EXPECT_EQ(got[key], want[key]) << key;
  }
  ASSERT_EQ(got["logprob"].size(), want["logprob"].size());
  for (std::size_t i = 0; i < want["logprob"].size(); ++i) {
    const double logprob = want["logprob"][i].get<double>();
    EXPECT_NEAR(got["logprob"][i].get<double>(), logprob, 1e-4 * std::abs(logprob));
  }
}

TEST_F(EvalGolden, SamplesAreTheReferences) {
  const std::string path = kShared + "/golden/eval/expected.json";
  const Json golden = parse_json(read_text(FileSystem::real(), path, 1 << 20), path);
  auto zero = samples({"--limit", "8", "--tasks",
                       "hellaswag,arc_easy,arc_challenge,openbookqa,piqa,boolq,winogrande"});
  const std::string mmlu =
      "mmlu_abstract_algebra,mmlu_high_school_computer_science,mmlu_miscellaneous";
  zero.merge(samples({"--limit", "8", "--tasks", mmlu}));
  const auto five = samples({"--limit", "8", "--fewshot", "5", "--tasks", mmlu});
  std::size_t compared = 0;
  for (const Json& want : golden["requests"]) {
    const std::pair<std::string, std::size_t> key{want["task"].get<std::string>(),
                                                  want["doc"].get<std::size_t>()};
    SCOPED_TRACE(concat(key.first, " ", key.second, " ", want["fewshot"]));
    const auto& all = want["fewshot"] == 0 ? zero : five;
    const auto found = all.find(key);
    ASSERT_NE(found, all.end());
    compare(want, found->second);
    ++compared;
  }
  EXPECT_GE(compared, 80U);
}

TEST_F(EvalGolden, EveryFrozenRequestFileRuns) {
  std::vector<std::string> arguments = {"--limit", "6", "--requests"};
  std::size_t files = 0;
  for (const auto& entry : stdfs::directory_iterator(kShared + "/data/eval/requests")) {
    arguments.push_back(entry.path().string());
    ++files;
  }
  const ProcessResult result = eval(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json requests = parse_json(result.out, "stdout")["requests"];
  EXPECT_EQ(requests.size(), files);
  for (const auto& [name, json] : requests.items()) {
    EXPECT_EQ(json["n"], 6) << name;
    EXPECT_GT(json["bits_per_byte"].get<double>(), 0) << name;
    // Where only the gold continuation is there, nothing can be chosen.
    const bool gold_only = name.find("gold_bpb") != std::string::npos;
    for (const char* key : {"acc", "acc_per_char", "acc_per_byte"}) {
      EXPECT_EQ(json[key].is_null(), gold_only) << name << " " << key;
    }
  }
}

}  // namespace
}  // namespace lockstep
