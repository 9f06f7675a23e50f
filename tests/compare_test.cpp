// lockstep compare on real runs: its verdicts, exit codes and refusals.

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "base/rng.h"
#include "checkpoint/paths.h"
#include "eval/evaluation_file.h"
#include "tests/tiny_run.h"

namespace lockstep {
namespace {

namespace stdfs = std::filesystem;

class CompareRuns : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    const CounterRng rng(2, "held-out");
    std::string bytes;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const auto id = static_cast<std::uint32_t>(i % 20 == 19 ? 0 : 1 + rng.u64(i) % 99);
      bytes.append(reinterpret_cast<const char*>(&id), sizeof id);
    }
    write("data/web.npy", bytes);
    write("data/books.npy", bytes.substr(bytes.size() / 2));
    write("data/held.mix", "c4_en,web.npy\nbooks,books.npy\n");
  }

  // A run with evaluations and checkpoints at steps 10 and 20, in fp32; tasks are put in by hand,
  // since the runs have no tokenizer.
  void make_run(const std::string& run, const std::vector<std::string>& overrides = {},
                int right = 300) {
    std::vector<std::string> all = {"train.precision=fp32",     "eval.interval=10",
                                    "eval.mix=data/held.mix",   "eval.base_dir=data",
                                    "checkpoint.interval=10",   "checkpoint.keep_last=0",
                                    "model.context_length=128", "run.name=" + run};
    all.insert(all.end(), overrides.begin(), overrides.end());
    train_well(run, all);
    for (const std::int64_t step : {10, 20}) {
      if (stdfs::exists(path(evaluation_of(run, step)))) answer_tasks(run, step, right);
    }
  }

  [[nodiscard]] std::string evaluation_of(const std::string& run, std::int64_t step) const {
    return run + "/evals/" + paths::checkpoint_name(step) + ".json";
  }

  void answer_tasks(const std::string& run, std::int64_t step, int right) const {
    const std::string name = evaluation_of(run, step);
    Evaluation evaluation = read_evaluation(FileSystem::real(), path(name));
    TaskSurface task;
    task.name = "arc_easy";
    task.n = 600;
    for (int i = 0; i < 600; ++i) {
      task.documents.push_back({.doc = i, .subtask = "", .acc = i < right});
    }
    evaluation.tasks = {task};
    write(name, to_json_text(evaluation));
  }

  // The same results and weights as another program would leave them.
  void make_bundle(const std::string& run, const std::string& bundle) const {
    stdfs::create_directories(path(bundle));
    for (const char* part : {"metrics.jsonl", "evals", "checkpoints"}) {
      stdfs::copy(path(run) + "/" + part, path(bundle) + "/" + part,
                  stdfs::copy_options::recursive);
    }
    write(bundle + "/bundle.json",
          R"({"format": "lockstep-bundle", "version": 1, "name": "peer", "producer": "a peer",
              "precision": "fp32", "recipe": {}, "steps": 20, "tokens_per_step": 198,
              "stages": []})");
  }

  ProcessResult compare(const std::string& a, const std::string& b,
                        const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"compare", a, b};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lockstep(directory_, arguments);
  }

  // The JSON of a comparison that ends with this exit code.
  [[nodiscard]] Json compared(const std::string& a, const std::string& b, int exit_code,
                              std::vector<std::string> more = {}) const {
    more.emplace_back("--json");
    const ProcessResult result = compare(a, b, more);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    return parse_json(result.out, "stdout");
  }

  // The last checkpoint's entry of a surface.
  static Json surface(const Json& comparison, const std::string& name) {
    Json found;
    for (const Json& each : comparison.at("surfaces")) {
      if (each.at("surface") == name) found = each;
    }
    EXPECT_FALSE(found.is_null()) << name;
    return found;
  }

  static bool noted(const Json& comparison, const std::string& word) {
    const Json& notes = comparison.at("notes");
    return std::any_of(notes.begin(), notes.end(), [&](const Json& note) {
      return note.get<std::string>().find(word) != std::string::npos;
    });
  }

  static void expect_refused(const ProcessResult& result, int exit_code,
                             const std::vector<std::string>& words) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err << result.out;
    for (const auto& word : words) {
      EXPECT_NE(result.err.find(word), std::string::npos) << word << " not in: " << result.err;
    }
  }
};

TEST_F(CompareRuns, EqualRunsAreReproducedAndAnotherRopeIsNot) {
  make_run("a");
  make_run("b", {"cpu.threads=1"});
  make_run("theta", {"model.rope_theta=10000"});
  const Json same = compared("a", "b", 0);
  EXPECT_EQ(same.at("verdict"), "reproduced");
  EXPECT_EQ(same.at("step"), 20);
  EXPECT_EQ(same.at("training_loss").at("common_steps"), 20);
  EXPECT_EQ(same.at("training_loss").at("max_abs"), 0);
  EXPECT_EQ(same.at("training_loss").at("batches_different"), 0);
  for (const char* name :
       {"c4_loss", "tasks", "tasks/arc_easy", "perplexity", "perplexity/books", "token_kl"}) {
    const Json entry = surface(same, name);
    EXPECT_EQ(entry.at("verdict"), "reproduced") << entry;
    EXPECT_EQ(entry.at("statistic"), 0) << entry;
    EXPECT_GE(entry.at("tolerance"), 0);
    EXPECT_LE(entry.at("interval").at(0), 0);
    EXPECT_GE(entry.at("interval").at(1), 0);
    EXPECT_EQ(entry.at("step"), 20);
  }
  EXPECT_EQ(surface(same, "token_kl").at("top1"), 1);

  // Twenty steps of a tiny model hardly use positions: held to an exact match it shows.
  const Json other = compared("theta", "b", 10, {"--tolerance", "token_kl=1e-6"});
  EXPECT_EQ(other.at("verdict"), "differs");
  EXPECT_EQ(surface(other, "token_kl").at("verdict"), "differs");
  EXPECT_GT(surface(other, "token_kl").at("interval").at(0), 1e-6);
  EXPECT_EQ(surface(other, "tasks").at("verdict"), "reproduced");

  // The floor makes the tolerance: against itself B has no distance at all.
  const Json held = compared("theta", "b", 10, {"--floor", "a", "--context", "theta"});
  EXPECT_EQ(surface(held, "token_kl").at("tolerance"), 0);
  EXPECT_FALSE(held.at("floor").at("surfaces").empty());
  EXPECT_EQ(held.at("context").at("name"), "theta");
  // The same comparison gives the same bytes on any number of threads.
  EXPECT_EQ(compare("theta", "b", {"--json", "--threads", "1"}).out,
            compare("theta", "b", {"--json", "--threads", "3"}).out);

  const ProcessResult text = compare("a", "b");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("verdict: reproduced (at step 20)"), std::string::npos) << text.out;

  // The page holds the measured token KL and the columns of the companions.
  const ProcessResult page =
      compare("theta", "b", {"--floor", "a", "--context", "theta", "--report", "page.html"});
  EXPECT_EQ(page.exit_code, 10) << page.err;
  const std::string html = read("page.html");
  for (const char* each :
       {"<strong>differs</strong> theta against b", "<th scope=\"col\">Floor</th>",
        "Context: the difference of theta from b.", "<th scope=\"row\">token_kl</th>"}) {
    EXPECT_NE(html.find(each), std::string::npos) << each;
  }
  EXPECT_EQ(compare("a", "b", {"--report", "a"}).exit_code, 2);
}

TEST_F(CompareRuns, BundlesModelsAndOtherVocabularies) {
  make_run("a");
  make_bundle("a", "peer");
  EXPECT_EQ(compared("a", "peer", 0).at("b").at("producer"), "a peer");
  // A checkpoint by itself has its evaluation but no curve.
  const Json model = compared("a/checkpoints/step-00000020", "peer", 0);
  EXPECT_EQ(model.at("training_loss").at("common_steps"), 0);
  EXPECT_TRUE(noted(model, "without a training-loss curve"));
  // A directory elsewhere does not tell its step.
  stdfs::copy(path("a/checkpoints/step-00000020"), path("copied"));
  const Json copied =
      compared("copied", "peer", 11, {"--mix", "data/held.mix", "--base-dir", "data"});
  EXPECT_TRUE(noted(copied, "does not tell its step"));
  EXPECT_EQ(surface(copied, "token_kl").at("verdict"), "reproduced");
  EXPECT_EQ(surface(copied, "c4_loss").at("reason"), "A has no held-out losses");
  EXPECT_EQ(compared("copied", "peer", 0,
                     {"--evaluation-a", evaluation_of("a", 20), "--mix", "data/held.mix",
                      "--base-dir", "data"})
                .at("verdict"),
            "reproduced");
  // Without weights there is no token KL.
  stdfs::remove_all(path("peer/checkpoints"));
  const Json bare = compared("a", "peer", 11);
  EXPECT_NE(surface(bare, "token_kl").at("reason").get<std::string>().find("no weights"),
            std::string::npos);
  EXPECT_EQ(surface(bare, "c4_loss").at("verdict"), "reproduced");

  make_run("wide", {"model.vocab_size=101"});
  const Json wide = compared("wide", "a", 11);
  for (const char* name : {"c4_loss", "perplexity", "token_kl"}) {
    EXPECT_NE(surface(wide, name).at("reason").get<std::string>().find("vocabularies differ"),
              std::string::npos);
  }
  EXPECT_EQ(surface(wide, "tasks").at("verdict"), "reproduced");
}

TEST_F(CompareRuns, DifferencesOfLossesTasksAndSteps) {
  make_run("a");
  make_run("fast", {"optim.lr=3e-2"}, 200);
  const Json differs = compared("fast", "a", 10);
  EXPECT_EQ(surface(differs, "tasks").at("verdict"), "differs");
  EXPECT_GT(differs.at("training_loss").at("max_abs"), 0.01);
  const Json loose = compared(
      "fast", "a", 0,
      {"--tolerance", "c4_loss=100", "--tolerance", "perplexity=100", "--tolerance", "domain=100",
       "--tolerance", "tasks=1", "--tolerance", "task=1", "--tolerance", "token_kl=100"});
  EXPECT_EQ(loose.at("tolerances").at("domain"), 100);
  make_run("short", {"train.steps=10", "schedule.kind=constant"});
  EXPECT_TRUE(noted(compared("short", "a", 0), "common: 10"));
  stdfs::remove_all(path("short/evals"));
  stdfs::remove_all(path("short/checkpoints"));
  EXPECT_TRUE(noted(compared("short", "a", 11), "no checkpoint is common"));
}

TEST_F(CompareRuns, BadInputIsRefusedWithItsPlace) {
  make_run("a");
  make_bundle("a", "peer");
  expect_refused(compare("none", "a"), 2, {"none", "does not exist"});
  expect_refused(compare("a", "data"), 2, {"data", "recipe.toml"});
  expect_refused(compare("a", "tiny.toml"), 2, {"tiny.toml", "not a directory"});
  expect_refused(run_lockstep(directory_, {"compare", "a"}), 2, {"B is required"});
  expect_refused(compare("a", "peer", {"--tolerance", "c4=1"}), 2, {"c4_loss"});
  expect_refused(compare("a", "peer", {"--floor", "data"}), 2, {"data"});
  expect_refused(compare("a", "peer", {"--precision", "fp8"}), 2, {"fp8"});
  expect_refused(compare("a", "peer", {"--mix", "none.mix"}), 2, {"none.mix"});

  const std::string metrics = read("peer/metrics.jsonl");
  write("peer/metrics.jsonl", metrics + "{\"step\": 21, \"lo");
  EXPECT_TRUE(noted(compared("a", "peer", 0), "torn"));
  write("peer/metrics.jsonl", "{\"step\": 1\n" + metrics);
  expect_refused(compare("a", "peer"), 3, {"peer/metrics.jsonl:1"});
  write("peer/metrics.jsonl", "");
  EXPECT_TRUE(noted(compared("a", "peer", 0), "holds no step"));

  const std::string evaluation = read(evaluation_of("peer", 20));
  std::string newer = evaluation;
  const auto at = newer.find("\"version\":");
  ASSERT_NE(at, std::string::npos);
  newer.insert(newer.find('1', at), "9");
  write(evaluation_of("peer", 20), newer);
  expect_refused(compare("a", "peer"), 3, {"peer/evals/step-00000020.json", "version"});
  write(evaluation_of("peer", 20), evaluation.substr(0, evaluation.size() / 2));
  expect_refused(compare("a", "peer"), 3, {"peer/evals/step-00000020.json"});
  write(evaluation_of("peer", 20), evaluation);

  write("peer/bundle.json", R"({"format": "lockstep-bundle", "version": 2})");
  expect_refused(compare("a", "peer"), 2, {"peer/bundle.json", "version 2"});
  const ProcessResult json = compare("a", "none", {"--json"});
  EXPECT_EQ(parse_json(json.out, "stdout").at("exit_code"), 2);
}

TEST_F(CompareRuns, AClosedPipeKeepsTheExitCode) {
  make_run("a");
  const std::string command = concat("cd '", directory_, "' && { '", LOCKSTEP_BINARY_DIR,
                                     "/lockstep' compare a a; echo $? > code; } 2>&1 | true");
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read("code"), "0\n");
}

}  // namespace
}  // namespace lockstep
