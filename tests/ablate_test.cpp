// Ablations and averages, by the real binary on tiny runs.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "base/json.h"
#include "tests/tiny_run.h"

namespace lockstep {
namespace {

class TinyAblation : public TinyRun {
 protected:
  [[nodiscard]] static std::vector<std::string> command(const std::string& out) {
    return {"ablate",
            "tiny.toml",
            "eval.mix=data/held.mix",
            "eval.batch=2",
            "train.steps=17",
            "--vary",
            "model.n_heads=8,model.head_dim=4,model.n_kv_heads=4",
            "--block",
            "3",
            "-o",
            out,
            "--json"};
  }
  [[nodiscard]] std::vector<std::string> variant() const {
    return {"train.steps=17", "model.n_heads=8", "model.head_dim=4", "model.n_kv_heads=4"};
  }
};

TEST_F(TinyAblation, TrainsEachVariantToTheBitsOfARunOfItsOwn) {
  const ProcessResult result = run_lockstep(directory_, command("out"));
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  train_well("alone-1", {"train.steps=17"});
  train_well("alone-2", variant());
  expect_same_run("out/variant-1", "alone-1");
  expect_same_run("out/variant-2", "alone-2");

  const Json found = parse_json(result.out, "stdout");
  EXPECT_EQ(found, parse_json(read("out/ablation.json"), "ablation.json"));
  EXPECT_EQ(found["finished"], true);
  EXPECT_EQ(found["steps"], 17);
  EXPECT_EQ(found["tokens"], 17 * 6 * 33);
  const Json& base = found["variants"][0];
  const Json& other = found["variants"][1];
  EXPECT_EQ(base["label"], "recipe");
  EXPECT_TRUE(base["speed_ratio"].is_null());
  EXPECT_EQ(other["speed_ratio"]["n"], 6);  // blocks of 3, the last of 2
  EXPECT_GT(other["speed_ratio"]["value"], 0.0);
  const double low = other["heldout_difference"]["interval"][0];
  const double high = other["heldout_difference"]["interval"][1];
  EXPECT_LT(low, high);
  const double difference = other["heldout_difference"]["value"];
  EXPECT_NEAR(difference, other["heldout_loss"].get<double>() - base["heldout_loss"].get<double>(),
              1e-12);

  // The report shows the table, and the variants as runs of their own names.
  const ProcessResult report = run_lockstep(directory_, {"report", "out", "-o", "out.html"});
  ASSERT_EQ(report.exit_code, 0) << report.err;
  const std::string html = read("out.html");
  for (const char* each :
       {"<h2 id=\"ablation-title\">Ablation</h2>", "17 steps each",
        "<th scope=\"row\">model.n_heads=8 model.head_dim=4 model.n_kv_heads=4</th>",
        "in turns of 3 steps", "\"name\":\"recipe\""}) {
    EXPECT_NE(html.find(each), std::string::npos) << each;
  }

  // The loss is that of `eval` on the variant's last checkpoint.
  const ProcessResult eval =
      run_lockstep(directory_, {"eval", "--heldout", "--model", "out/variant-2", "--mix",
                                "data/held.mix", "--base-dir", "data", "--sequence-length", "33",
                                "--precision", "bf16", "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_EQ(parse_json(eval.out, "eval")["total"]["loss"], other["heldout_loss"]);
}

TEST_F(TinyAblation, GoesOnWhereAKilledOneWas) {
  for (int kill = 0; kill < 3; ++kill) {
    Process process(directory_, command("out"));
    const std::string metrics =
        path(kill == 0 ? "out/variant-1/metrics.jsonl" : "out/variant-2/metrics.jsonl");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (process.running() && !std::filesystem::exists(metrics) &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * kill));
    process.signal(SIGKILL);
    process.wait();
  }
  const ProcessResult result = run_lockstep(directory_, command("out"));
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  train_well("alone-2", variant());
  expect_same_run("out/variant-2", "alone-2");
  // Once more: nothing is left to train, and the answer is the same.
  const ProcessResult again = run_lockstep(directory_, command("out"));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  Json first = parse_json(result.out, "stdout");
  Json second = parse_json(again.out, "stdout");
  first.erase("machine");  // holds the load
  second.erase("machine");
  EXPECT_EQ(first, second);
}

TEST_F(TinyAblation, RefusesADirectoryOfAnotherAblation) {
  auto stopped = command("out");
  stopped.emplace_back("train.stop_at=2");
  ASSERT_EQ(run_lockstep(directory_, stopped).exit_code, 0);
  const ProcessResult result = run_lockstep(directory_, command("out"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("another ablation"), std::string::npos) << result.err;
}

TEST_F(TinyRun, AnAverageOfCheckpointsEvaluatesAndStartsARun) {
  train_well("run", {"checkpoint.keep_last=0"});
  const auto step = [](const char* name) { return std::string("run/checkpoints/") + name; };
  const std::vector<std::string> steps = {step("step-00000012"), step("step-00000016"),
                                          step("step-00000020")};
  for (const auto& order : {std::vector<int>{0, 1, 2}, std::vector<int>{2, 0, 1}}) {
    std::vector<std::string> arguments = {"checkpoint", "average"};
    for (const int i : order) arguments.push_back(steps[static_cast<std::size_t>(i)]);
    arguments.insert(arguments.end(), {"-o", order[0] == 0 ? "soup" : "other"});
    const ProcessResult result = run_lockstep(directory_, arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  for (const char* name : {"/model.safetensors", "/config.json", "/average.json"}) {
    EXPECT_EQ(read(std::string("soup") + name), read(std::string("other") + name)) << name;
    EXPECT_NE(read(std::string("soup") + name), "") << name;
  }
  const Json record = parse_json(read("soup/average.json"), "average.json");
  std::multiset<std::int64_t> found;
  for (const Json& source : record["sources"]) found.insert(source["step"].get<std::int64_t>());
  EXPECT_EQ(found, (std::multiset<std::int64_t>{12, 16, 20}));
  const ProcessResult eval =
      run_lockstep(directory_, {"eval", "--heldout", "--model", "soup", "--mix", "data/held.mix",
                                "--base-dir", "data", "--sequence-length", "33"});
  EXPECT_EQ(eval.exit_code, 0) << eval.err;
  train_well("next", {"init.from=soup", "train.stop_at=2"});

  const ProcessResult twice =
      run_lockstep(directory_, {"checkpoint", "average", steps[0], steps[0], "-o", "twice"});
  EXPECT_EQ(twice.exit_code, 2);
  corrupt_byte(steps[1] + "/model.safetensors", 4000);
  const ProcessResult damaged =
      run_lockstep(directory_, {"checkpoint", "average", steps[0], steps[1], "-o", "damaged"});
  EXPECT_EQ(damaged.exit_code, 3) << damaged.err;
  EXPECT_FALSE(std::filesystem::exists(path("damaged")));
}

}  // namespace
}  // namespace lockstep
