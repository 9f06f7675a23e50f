#include "report/comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/scratch_directory.h"

namespace lockstep {
namespace {

// 200 questions answered right up to `right`, 20 documents of loss `loss`, and a KL against B.
std::string evaluation(std::int64_t step, double loss, int right, double kl,
                       const std::string& reference) {
  Evaluation result;
  result.model = {.name = "m", .step = step, .precision = "fp32", .producer = "test"};
  result.heldout = HeldoutSurface{
      .data_fingerprint = "d", .sequence_length = 8, .domains = {}, .by_document = {}};
  result.heldout->domains.push_back({.label = "c4", .documents = 20, .targets = 140, .loss = loss});
  for (std::int64_t d = 0; d < 20; ++d) {
    result.heldout->by_document.push_back(
        {.label = "c4", .document = d, .targets = 7, .bytes = 0, .ce = 7 * loss});
  }
  TaskSurface task;
  task.name = "t";
  task.n = 500;
  for (int i = 0; i < 500; ++i) {
    task.documents.push_back({.doc = i, .subtask = "", .acc = i < right});
  }
  result.tasks = {task};
  if (!reference.empty()) {
    KlSurface surface;
    surface.reference = reference;
    surface.vocab = 10;
    surface.tokens = 140;
    surface.mean = kl;
    for (std::int64_t d = 0; d < 20; ++d) {
      surface.by_document.push_back({.document = d, .tokens = 7, .kl = 7 * kl});
    }
    result.kl = surface;
  }
  return to_json_text(result);
}

class Comparing : public ::testing::Test {
 protected:
  void bundle(const std::string& name, const std::vector<std::int64_t>& steps, double loss = 4,
              int right = 250, double kl = 1e-5, const std::string& reference = "ref") {
    files_.write(name + "/bundle.json",
                 R"({"format": "lockstep-bundle", "version": 1, "name": ")" + name +
                     R"(", "producer": "p", "precision": "fp32", "tokens_per_step": 8})");
    std::string curve;
    for (int i = 1; i <= 60; ++i) {
      curve += concat("{\"step\": ", i, ", \"loss\": ", loss + 1.0 / i, "}\n");
    }
    files_.write(name + "/metrics.jsonl", curve);
    for (const std::int64_t step : steps) {
      files_.write(name + "/evals/step-0000000" + std::to_string(step) + ".json",
                   evaluation(step, loss, right, kl, reference));
    }
  }
  Comparison compare(const std::string& a, const std::string& b, const std::string& floor = "",
                     const std::string& context = "") {
    const auto load = [&](const std::string& name) {
      return load_evidence(FileSystem::real(), files_.path(name));
    };
    const Evidence floor_side = floor.empty() ? Evidence{} : load(floor);
    const Evidence context_side = context.empty() ? Evidence{} : load(context);
    return compare_evidence(FileSystem::real(), load(a), load(b),
                            floor.empty() ? nullptr : &floor_side,
                            context.empty() ? nullptr : &context_side, options_, pool_);
  }
  static const SurfaceResult& last(const Comparison& comparison, const std::string& surface) {
    for (const auto& each : comparison.steps.back().surfaces) {
      if (each.surface == surface) return each;
    }
    ADD_FAILURE() << surface;
    return comparison.steps.back().surfaces.front();
  }
  static bool noted(const Comparison& comparison, const std::string& word) {
    for (const auto& note : comparison.notes) {
      if (note.find(word) != std::string::npos) return true;
    }
    return false;
  }

  ScratchDirectory files_;
  CompareOptions options_;
  ThreadPool pool_{1};
};

TEST_F(Comparing, AFaithfulRunIsReproduced) {
  bundle("ref", {1, 2});
  bundle("ours", {1, 2});
  const Comparison result = compare("ours", "ref");
  EXPECT_EQ(result.verdict, Verdict::kReproduced);
  EXPECT_EQ(result.steps.size(), 2U);
  EXPECT_EQ(result.training_loss.max_abs, 0);
  EXPECT_EQ(last(result, "token_kl").tolerance, 1.5e-3);
}

TEST_F(Comparing, TheLastCheckpointDecides) {
  bundle("ref", {1, 2});
  bundle("ours", {1, 2});
  files_.write("ours/evals/step-00000001.json", evaluation(1, 9, 250, 1e-5, "ref"));
  EXPECT_EQ(compare("ours", "ref").verdict, Verdict::kReproduced);
  files_.write("ours/evals/step-00000002.json", evaluation(2, 9, 250, 1e-5, "ref"));
  const Comparison result = compare("ours", "ref");
  EXPECT_EQ(result.verdict, Verdict::kDiffers);
  EXPECT_EQ(last(result, "c4_loss").verdict, Verdict::kDiffers);
  EXPECT_EQ(last(result, "tasks").verdict, Verdict::kReproduced);
}

TEST_F(Comparing, OneSurfaceWithoutDataLeavesItOpen) {
  bundle("ref", {1});
  bundle("ours", {1}, 4, 250, 0, "");
  const Comparison result = compare("ours", "ref");
  EXPECT_EQ(result.verdict, Verdict::kNotEnoughData);
  EXPECT_EQ(last(result, "token_kl").reason, "no evaluation holds it");
}

TEST_F(Comparing, ATokenKlAgainstAnotherReferenceDoesNotCount) {
  bundle("ref", {1});
  bundle("ours", {1}, 4, 250, 1e-5, "someone else");
  const Comparison result = compare("ours", "ref");
  EXPECT_EQ(result.verdict, Verdict::kNotEnoughData);
  EXPECT_TRUE(noted(result, "someone else"));
  bundle("ours", {1}, 4, 250, 1e-5, files_.path("ref") + "/");
  EXPECT_EQ(compare("ours", "ref").verdict, Verdict::kReproduced);
}

TEST_F(Comparing, TokenKlIsMeasuredWhereNoEvaluationHoldsIt) {
  bundle("ref", {1});
  bundle("ours", {1}, 4, 250, 0, "");
  options_.measure_kl = [](const Evidence& model, std::int64_t step, const Evidence& reference,
                           std::int64_t) {
    EXPECT_EQ(model.name, "ours");
    EXPECT_EQ(reference.name, "ref");
    EXPECT_EQ(step, 1);
    KlSurface kl;
    for (std::int64_t d = 0; d < 20; ++d) {
      kl.by_document.push_back({.document = d, .tokens = 1, .kl = 1});
    }
    return MeasuredKl{.kl = kl, .reason = {}};
  };
  EXPECT_EQ(compare("ours", "ref").verdict, Verdict::kDiffers);
}

TEST_F(Comparing, TheFloorSetsTheToleranceUnlessOneIsGiven) {
  bundle("ref", {1});
  bundle("low", {1}, 4, 250, 6e-5);
  bundle("ours", {1}, 4, 250, 1e-3);
  bundle("seed", {1}, 4.5, 250, 0.2);
  EXPECT_EQ(compare("ours", "ref").verdict, Verdict::kReproduced);
  const Comparison held = compare("ours", "ref", "low", "seed");
  EXPECT_EQ(held.verdict, Verdict::kDiffers);
  EXPECT_DOUBLE_EQ(last(held, "token_kl").tolerance, 1.2e-4);
  EXPECT_EQ(held.floor->steps.size(), 1U);
  EXPECT_EQ(held.context->steps.size(), 1U);  // shown, though it differs everywhere
  options_.surfaces.tolerances.set("token_kl=0.01");
  EXPECT_EQ(compare("ours", "ref", "low").verdict, Verdict::kReproduced);
  EXPECT_FALSE(noted(held, "rounding alone"));
  bundle("high", {1}, 4, 250, 0.01);
  options_.surfaces.tolerances = {};
  EXPECT_TRUE(noted(compare("ours", "ref", "high"), "rounding alone"));
  bundle("late", {9});
  EXPECT_TRUE(noted(compare("ours", "ref", "late"), "is not used"));
}

TEST_F(Comparing, CheckpointsThatAreNotCommonAreNamed) {
  bundle("ref", {1, 3});
  bundle("ours", {2, 3});
  EXPECT_EQ(compare("ours", "ref").steps.size(), 1U);
  EXPECT_TRUE(noted(compare("ours", "ref"), "steps 2, 3; of B: steps 1, 3"));
  bundle("other", {5});
  const Comparison none = compare("ours", "other");
  EXPECT_TRUE(none.steps.empty());
  EXPECT_EQ(none.verdict, Verdict::kNotEnoughData);
  EXPECT_TRUE(noted(none, "no checkpoint is common"));
}

TEST_F(Comparing, TrainingLossThatFallsByMemoryIsNoted) {
  bundle("ref", {1});
  bundle("ours", {1});
  EXPECT_FALSE(noted(compare("ours", "ref"), "seen more than once"));
  std::string curve;
  for (int i = 1; i <= 60; ++i) curve += concat("{\"step\": ", i, ", \"loss\": 3}\n");
  files_.write("ours/metrics.jsonl", curve);
  EXPECT_TRUE(noted(compare("ours", "ref"), "training loss of A is lower"));
  EXPECT_TRUE(noted(compare("ref", "ours"), "training loss of B is lower"));
}

Evidence model(std::int64_t step) {
  Evidence evidence;
  evidence.path = "model";
  evidence.checkpoints.emplace(step, "model");
  return evidence;
}

TEST(CommonSteps, AModelMeetsItsStepOrTheLastOne) {
  Evidence run;
  run.kind = EvidenceKind::kRun;
  run.checkpoints = {{10, "a"}, {20, "b"}};
  run.evaluations = {{10, "x"}, {20, "y"}};
  const auto pair = [&](const Evidence& a, const Evidence& b) {
    std::vector<std::string> notes;
    const auto steps = common_steps(a, b, notes);
    return steps.empty() ? std::pair{-2L, -2L} : std::pair{steps[0].step_a, steps[0].step_b};
  };
  EXPECT_EQ(pair(model(10), run), std::pair(10L, 10L));
  EXPECT_EQ(pair(model(kUnknownStep), run), std::pair(kUnknownStep, 20L));
  EXPECT_EQ(pair(run, model(kUnknownStep)), std::pair(20L, kUnknownStep));
  EXPECT_EQ(pair(model(15), run), std::pair(-2L, -2L));
  EXPECT_EQ(pair(model(5), model(7)), std::pair(5L, 7L));
  EXPECT_EQ(pair(model(kUnknownStep), model(kUnknownStep)), std::pair(kUnknownStep, kUnknownStep));
}

TEST(CommonSteps, WeightsCountWhereNoEvaluationsAre) {
  Evidence a;
  a.kind = EvidenceKind::kRun;
  a.checkpoints = {{10, "a"}, {20, "b"}};
  Evidence b = a;
  b.kind = EvidenceKind::kBundle;
  b.checkpoints = {{10, "c"}};
  b.logits = {{20, "d"}};
  std::vector<std::string> notes;
  EXPECT_EQ(common_steps(a, b, notes).size(), 2U);
  EXPECT_TRUE(notes.empty());
  a.evaluations = b.evaluations = {{10, "e"}};
  EXPECT_EQ(common_steps(a, b, notes).size(), 1U);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("weights of step 20"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
