// The surfaces of a model through the real binary: during a run and after it, to the same bits.

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "tests/tiny_run.h"

namespace lockstep {
namespace {

// A tiny run with a tokenizer, held-out text of two domains and a task of 12 questions.
class SurfacesOfARun : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    write("text.txt", "a question of the sky and the sea, the answer of the land\n");
    const ProcessResult trained =
        run_lockstep(directory_, {"tokenizer", "train", "text.txt", "-o", "tok.json",
                                  "--vocab-size", "270", "--special-tokens", "<|endoftext|>"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    write("data/held.mix", "held,held.npy\nC4-en,b.npy\n");
    std::string questions;
    for (int i = 0; i < 12; ++i) {
      questions +=
          concat(R"({"passage": "the sky of )", std::string(static_cast<std::size_t>(i), 'x'),
                 R"(", "question": "is it land", "label": )", i % 2, "}\n");
    }
    std::filesystem::create_directories(path("tasks"));
    write("tasks/boolq.validation.jsonl", questions);
  }

  // Of the recipe; `more` on top.
  static std::vector<std::string> keys(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"model.vocab_size=270", "data.tokenizer_file=tok.json",
                             "checkpoint.keep_last=0", "train.steps=8"});
    return more;
  }
  static std::vector<std::string> watched_keys() {
    return keys({"eval.interval=4", "eval.surfaces=[\"heldout\",\"tasks\",\"kl\"]",
                 "eval.mix=data/held.mix", "eval.tasks=[\"boolq\"]", "eval.tasks_data=tasks",
                 "eval.reference=plain", "eval.reference_precision=bf16", "eval.kl_tokens=300"});
  }
  ProcessResult eval(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"eval", "--model"});
    return run_lockstep(directory_, arguments);
  }
  void eval_well(const std::vector<std::string>& arguments) const {
    const ProcessResult result = eval(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  }
  void expect_refused(const std::vector<std::string>& arguments, int exit_code,
                      const std::string& words) const {
    const ProcessResult result = eval(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    const auto begin = result.err.find("lockstep: error: ");
    ASSERT_NE(begin, std::string::npos) << result.err;
    const std::string message = result.err.substr(begin);
    EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
    EXPECT_NE(message.find(words), std::string::npos) << "no \"" << words << "\" in: " << message;
  }
};

TEST_F(SurfacesOfARun, DoNotDisturbItAndComeOutTheSameAfterwards) {
  train_well("plain", keys());
  train_well("watched", watched_keys());
  expect_same_run("plain", "watched");
  const std::string file = "watched/evals/step-00000008.json";
  const std::string during = read(file);
  const Json json = parse_json(during, file);
  EXPECT_EQ(json["model"]["step"], 8);
  EXPECT_EQ(json["heldout"]["domains"].size(), 2U);
  EXPECT_GT(json["heldout"]["by_document"].size(), 2U);
  EXPECT_EQ(json["tasks"][0]["documents"].size(), 12U);
  EXPECT_EQ(json["kl"]["max"], 0);  // the same weights
  EXPECT_EQ(json["kl"]["top1"], 1);
  EXPECT_GE(json["kl"]["tokens"].get<int>(), 300);

  // One surface is replaced by itself, the others stay: the same bytes.
  eval_well({"watched", "--surfaces", "heldout"});
  EXPECT_EQ(read(file), during);
  eval_well({"watched", "--surfaces"});
  EXPECT_EQ(read(file), during);
  eval_well({"watched/checkpoints/step-00000004", "--surfaces", "--reference", "plain", "-o", "x"});
  const Json other = parse_json(read("x"), "x");
  EXPECT_EQ(other["model"]["step"], 4);
  EXPECT_EQ(other["kl"]["reference"], "plain");
}

TEST_F(SurfacesOfARun, NoBitDependsOnBatchReuseOrThreads) {
  train_well("plain", keys());
  train_well("watched", watched_keys());
  const std::vector<std::string> common = {"watched/checkpoints/step-00000004", "--surfaces",
                                           "heldout,tasks,kl", "--reference",
                                           "plain/checkpoints/step-00000008"};
  const std::vector<std::vector<std::string>> ways = {
      {"--batch", "1", "--threads", "1"},
      {"--batch", "3", "--threads", "2"},
      {"--batch", "8", "--threads", "2"},
      {"--batch", "8", "--threads", "1", "--no-prefix-reuse"}};
  std::string first;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    auto arguments = common;
    arguments.insert(arguments.end(), ways[i].begin(), ways[i].end());
    const std::string file = concat("way-", i, ".json");
    arguments.insert(arguments.end(), {"-o", file});
    eval_well(arguments);
    if (i == 0) {
      first = read(file);
      EXPECT_GT(parse_json(first, file)["kl"]["mean"].get<double>(), 0);
    }
    EXPECT_EQ(read(file), first) << "way " << i;
  }
  // Every log-probability, not only which answers are right.
  for (std::size_t i = 0; i < ways.size(); ++i) {
    std::vector<std::string> arguments = {
        "watched", "--tasks", "boolq", "--data", "tasks", "--log-samples", concat("samples-", i)};
    arguments.insert(arguments.end(), ways[i].begin(), ways[i].end());
    eval_well(arguments);
    EXPECT_EQ(read(concat("samples-", i)), read("samples-0")) << "way " << i;
  }
}

TEST_F(SurfacesOfARun, AForkSetsTheLaterEvaluationsAside) {
  train_well("watched", keys({"eval.interval=4", "eval.mix=data/held.mix"}));
  train_well("watched", keys({"eval.interval=0", "optim.lr=1e-4", "run.fork_from=4"}));
  EXPECT_TRUE(std::filesystem::exists(path("watched/evals/step-00000004.json")));
  EXPECT_FALSE(std::filesystem::exists(path("watched/evals/step-00000008.json")));
  EXPECT_TRUE(std::filesystem::exists(path("watched/evals/step-00000008.before-fork-4")));
}

TEST_F(SurfacesOfARun, RefuseBadInputInOneLine) {
  train_well("plain", keys());
  train_well("other", {"train.steps=4"});
  const std::vector<std::string> mix = {"--mix", "data/held.mix", "--base-dir", "data"};
  const auto with = [](std::vector<std::string> a, const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  expect_refused({"plain", "--surfaces"}, 2, "nothing to evaluate");
  expect_refused({"plain", "--surfaces", "heldout,loss"}, 2, "no surface \"loss\"");
  expect_refused({"plain", "--surfaces", "heldout"}, 2, "--mix");
  expect_refused({"plain", "--surfaces", "heldout", "--mix", "none.mix"}, 2, "none.mix");
  expect_refused({"plain", "--surfaces", "tasks", "--data", "none"}, 2, "none");
  expect_refused({"plain", "--surfaces", "tasks", "--data", "tasks", "--tasks", "boolQ"}, 2,
                 "nearest: boolq");
  expect_refused({"plain", "--surfaces", "tasks", "--data", "tasks", "--limit", "-1"}, 2, "limit");
  expect_refused(with({"plain", "--surfaces", "kl"}, mix), 2, "--reference");
  expect_refused(with({"plain", "--surfaces", "kl", "--reference", "none"}, mix), 2, "none");
  expect_refused(with({"plain", "--surfaces", "kl", "--reference", "other"}, mix), 2,
                 "no checkpoint of step 8");
  expect_refused(
      with({"plain", "--surfaces", "kl", "--reference", "other/checkpoints/step-00000004"}, mix), 2,
      "a vocabulary of 100 ids");
  expect_refused(with({"plain", "--surfaces", "--c4", "c5"}, mix), 2, "c5");
  expect_refused({"plain", "--tasks", "boolq", "--data", "tasks", "-o", "x"}, 2, "--surfaces");
  write("tasks/boolq.validation.jsonl", "{\"passage\": \"x\", \"label\": 1}\n");
  expect_refused({"plain", "--surfaces", "tasks", "--data", "tasks", "--tasks", "boolq"}, 2,
                 "question");
  write("bad.json", "{\"format\": \"lockstep-evaluation\", \"version\": 2}");
  expect_refused(with({"plain", "--surfaces", "-o", "bad.json"}, mix), 3, "version");
  ASSERT_EQ(eval(with({"plain", "--surfaces", "-o", "good.json"}, mix)).exit_code, 0);
  expect_refused(with({"other", "--surfaces", "-o", "good.json"}, mix), 2, "name another file");
  EXPECT_EQ(train("third", keys({"eval.interval=4", "eval.surfaces=[\"loss\"]"})).exit_code, 2);
  EXPECT_EQ(
      train("third", keys({"eval.interval=4", "eval.surfaces=[\"kl\"]", "eval.mix=data/held.mix"}))
          .exit_code,
      2);
}

}  // namespace
}  // namespace lockstep
