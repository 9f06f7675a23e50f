#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/hf_import.h"
#include "eval/task_eval.h"
#include "io/compressed.h"

// Prompts, ids, log-probabilities and picks against lm-evaluation-harness's templates, Hugging
// Face's tokenizer and a reference model (tests/golden/eval/README.md).
namespace lockstep {
namespace {

const std::string kShared = std::string(LOCKSTEP_SOURCE_DIR) + "/../shared";

struct Reference {
  CpuStream stream{2};
  HfModel source{FileSystem::real(), kShared + "/golden/eval/model"};
  Tokenizer tokenizer =
      Tokenizer::load(FileSystem::real(), kShared + "/data/tokenizer/tokenizer.json");
  Model model{source.config(), {.precision = Precision::kFp32}, stream};

  Reference() {
    source.load(model.table(), model.weights(), stream.pool());
    model.refresh();
  }
};

class GoldenTasks : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* part :
         {"/golden/eval/model/model.safetensors", "/data/eval", "/data/tokenizer/tokenizer.json"}) {
      if (!std::filesystem::exists(kShared + part)) GTEST_SKIP() << kShared << part << ": missing";
    }
    static Reference once;
    reference_ = &once;
  }

  // The answers to the first eight questions of each subtask.
  std::vector<AnsweredSubtask> Answers(const char* name, const char* toml, std::uint32_t fewshot,
                                       const ScoreOptions& options) {
    const TaskSpec task = parse_task(toml, name, name);
    TaskReadOptions read{.fewshot = {.count = fewshot}, .limit = 8};
    if (!task.subtask.empty()) {
      read.limit = 4;
      read.only = {"abstract_algebra", "high_school_computer_science", "miscellaneous"};
    }
    EncodedTask encoded =
        encode_task(task, read_task(FileSystem::real(), task, kShared + "/data/eval", read),
                    reference_->tokenizer, 100257, reference_->source.config().context_length,
                    reference_->stream.pool());
    return answer_task(reference_->model, std::move(encoded), options);
  }

  Reference* reference_ = nullptr;
};

void compare(const Json& want, const AnsweredDocument& got) {
  const TaskDocument& document = got.document;
  if (want.contains("context")) {
    EXPECT_EQ(document.contexts, std::vector<std::string>{want["context"].get<std::string>()});
  } else {
    EXPECT_EQ(document.contexts, want["contexts"].get<std::vector<std::string>>());
  }
  EXPECT_EQ(got.continuations, want["continuations"].get<std::vector<std::string>>());
  EXPECT_EQ(document.choices, want["choices"].get<std::vector<std::string>>());
  EXPECT_EQ(document.gold, want["gold"].get<std::size_t>());
  EXPECT_EQ(got.context_tokens, want["ctx"].get<std::vector<std::int64_t>>());
  EXPECT_EQ(got.continuation_ids, want["cont"].get<std::vector<std::vector<std::int32_t>>>());
  for (std::size_t i = 0; i < got.scores.size(); ++i) {
    const double logprob = want["logprob"][i].get<double>();
    EXPECT_NEAR(got.scores[i].logprob, logprob, 1e-4 * std::abs(logprob));
    EXPECT_EQ(got.scores[i].greedy, want["greedy"][i].get<bool>());
  }
  EXPECT_EQ(got.picks.acc, want["pred_acc"].get<std::size_t>());
  EXPECT_EQ(got.picks.acc_norm, want["pred_acc_norm"].get<std::size_t>());
  EXPECT_EQ(got.picks.acc_bytes, want["pred_acc_bytes"].get<std::size_t>());
}

TEST_F(GoldenTasks, AreTheReference) {
  const std::string path = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/golden/eval/expected.json";
  const Json golden = parse_json(read_text(FileSystem::real(), path, 1 << 20), path);
  std::size_t compared = 0;
  for (const std::uint32_t fewshot : {0U, 5U}) {
    for (const auto& [name, toml] : built_in_tasks()) {
      if (fewshot > 0 && std::string_view(name) != "mmlu") continue;
      for (const auto& subtask : Answers(name, toml, fewshot, {})) {
        for (const auto& answer : subtask.documents) {
          SCOPED_TRACE(concat(subtask.name, " ", answer.document.doc, " ", fewshot));
          for (const Json& want : golden["requests"]) {
            if (want["task"] != subtask.name || want["doc"] != answer.document.doc ||
                want["fewshot"] != fewshot) {
              continue;
            }
            compare(want, answer);
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_EQ(compared, golden["requests"].size());
}

TEST_F(GoldenTasks, NoBitDependsOnTheBatchOrOnReuse) {
  for (const auto& [name, toml] : built_in_tasks()) {
    const auto want = Answers(name, toml, 0, {.tokens = 1, .reuse = PrefixReuse::kNo});
    for (const std::int64_t tokens : {700, 4096}) {
      const auto got = Answers(name, toml, 0, {.tokens = tokens});
      for (std::size_t s = 0; s < want.size(); ++s) {
        for (std::size_t d = 0; d < want[s].documents.size(); ++d) {
          const auto& a = want[s].documents[d].scores;
          const auto& b = got[s].documents[d].scores;
          for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].logprob, b[i].logprob) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
