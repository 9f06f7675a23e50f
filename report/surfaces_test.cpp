#include "report/surfaces.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

// 20 documents in each domain; document d of 10 + d targets has a loss of `loss` + d / 100.
HeldoutSurface heldout(double loss, const std::vector<std::string>& labels = {"web", "c4_en"}) {
  HeldoutSurface surface;
  surface.data_fingerprint = "data";
  surface.sequence_length = 64;
  std::int64_t number = 0;
  for (const auto& label : labels) {
    HeldoutSurface::Domain domain{.label = label};
    for (std::int64_t d = 0; d < 20; ++d) {
      const std::int64_t targets = 10 + d;
      const double ce = (loss + static_cast<double>(d) / 100) * static_cast<double>(targets);
      surface.by_document.push_back(
          {.label = label, .document = number++, .targets = targets, .bytes = 0, .ce = ce});
      domain.targets += targets;
      domain.loss += ce;
    }
    domain.loss /= static_cast<double>(domain.targets);
    surface.domains.push_back(domain);
  }
  return surface;
}

TaskSurface task(const std::string& name, int questions, int right) {
  TaskSurface surface;
  surface.name = name;
  for (int i = 0; i < questions; ++i) surface.documents.push_back({.doc = i, .acc = i < right});
  return surface;
}

const SurfaceResult& find(const std::vector<SurfaceResult>& results, const std::string& name) {
  for (const auto& result : results) {
    if (result.surface == name) return result;
  }
  ADD_FAILURE() << "no " << name;
  return results.front();
}

class Surfaces : public ::testing::Test {
 protected:
  std::vector<SurfaceResult> compare(const HeldoutSurface& a, const HeldoutSurface& b) {
    return compare_heldout(&a, &b, options_, pool_, notes_);
  }
  std::vector<SurfaceResult> compare(const std::vector<TaskSurface>& a,
                                     const std::vector<TaskSurface>& b) {
    return compare_tasks(&a, &b, options_, notes_);
  }
  [[nodiscard]] bool noted(const std::string& word) const {
    for (const auto& note : notes_) {
      if (note.find(word) != std::string::npos) return true;
    }
    return false;
  }

  SurfaceOptions options_;
  ThreadPool pool_{1};
  std::vector<std::string> notes_;
};

TEST_F(Surfaces, ConstantShiftsHaveExactVerdicts) {
  for (const auto& [shift, verdict] : {std::pair{0.0, Verdict::kReproduced},
                                       {0.005, Verdict::kReproduced},
                                       {0.5, Verdict::kDiffers},
                                       {-0.5, Verdict::kDiffers}}) {
    const auto results = compare(heldout(4 + shift), heldout(4));
    ASSERT_EQ(results.size(), 4U);
    for (const auto& result : results) {
      EXPECT_NEAR(result.estimate.value, shift, 1e-12);
      EXPECT_NEAR(result.estimate.interval.low, shift, 1e-9);
      EXPECT_EQ(result.verdict, verdict) << result.surface << shift;
      EXPECT_EQ(result.detail, result.surface.starts_with("perplexity/"));
    }
    EXPECT_EQ(results[0].label, "c4_en");
    EXPECT_EQ(find(results, "c4_loss").estimate.n, 20);
    EXPECT_EQ(find(results, "perplexity").estimate.n, 40);
  }
  EXPECT_TRUE(notes_.empty());
}

TEST_F(Surfaces, TheDomainThatCountsAsC4) {
  const auto named = [&](const std::string& wanted) {
    options_.c4_label = wanted;
    return compare(heldout(4), heldout(4))[0];
  };
  EXPECT_EQ(named("web").label, "web");
  EXPECT_EQ(named("books").verdict, Verdict::kNotEnoughData);
  EXPECT_NE(named("books").reason.find("books"), std::string::npos);
  options_.c4_label.clear();
  EXPECT_EQ(compare(heldout(4, {"x", "y"}), heldout(4, {"x", "y"}))[0].label, "x");
}

TEST_F(Surfaces, DocumentsPairByLabelNumberAndLength) {
  HeldoutSurface a = heldout(4);
  HeldoutSurface b = heldout(4);
  a.by_document[0].targets += 1;
  a.by_document[1].document = 1000;
  b.by_document.pop_back();
  b.data_fingerprint = "other";
  b.sequence_length = 32;
  const auto results = compare(a, b);
  EXPECT_EQ(find(results, "perplexity").estimate.n, 37);
  EXPECT_TRUE(noted("2 documents are in A only"));
  EXPECT_TRUE(noted("1 documents are in B only"));
  EXPECT_TRUE(noted("1 documents have different numbers of targets"));
  EXPECT_TRUE(noted("data and other"));
  EXPECT_TRUE(noted("64 tokens in A, 32 in B"));
  a.by_document[3] = a.by_document[2];
  EXPECT_THROW(compare(a, b), Error);
}

TEST_F(Surfaces, ADomainOfOneSideAndLossesWithoutDocuments) {
  const auto results = compare(heldout(4, {"x", "y"}), heldout(4, {"x", "z"}));
  EXPECT_EQ(find(results, "perplexity/y").verdict, Verdict::kNotEnoughData);
  EXPECT_EQ(find(results, "perplexity/z").verdict, Verdict::kNotEnoughData);
  EXPECT_EQ(find(results, "perplexity/x").verdict, Verdict::kReproduced);
  HeldoutSurface bare = heldout(5);
  bare.by_document.clear();
  const auto loss = find(compare(bare, heldout(4)), "perplexity");
  EXPECT_NEAR(loss.estimate.value, 1, 1e-12);
  EXPECT_EQ(loss.verdict, Verdict::kNotEnoughData);
}

TEST_F(Surfaces, AMissingSideIsNamed) {
  const HeldoutSurface one = heldout(4);
  const auto results = compare_heldout(&one, nullptr, options_, pool_, notes_);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].verdict, Verdict::kNotEnoughData);
  EXPECT_EQ(results[0].reason, "B has no held-out losses");
  const std::vector<TaskSurface> none;
  EXPECT_EQ(compare(none, none)[0].reason, "A and B have no task results");
}

TEST_F(Surfaces, EqualAnswersOfFewQuestionsAreNotEnough) {
  const auto verdict = [&](int questions) {
    return find(compare({task("t", questions, 3)}, {task("t", questions, 3)}), "tasks/t").verdict;
  };
  EXPECT_EQ(verdict(9), Verdict::kNotEnoughData);
  // Half a width of 3.84 / (n + 3.84) within 0.05: from 73 questions on.
  EXPECT_EQ(verdict(72), Verdict::kNotEnoughData);
  EXPECT_EQ(verdict(74), Verdict::kReproduced);
}

TEST_F(Surfaces, TheMeanOfTasksWeighsThemEqually) {
  const auto results = compare({task("t", 100, 60), task("u", 1000, 500), task("alone", 50, 1)},
                               {task("t", 100, 30), task("u", 1000, 500)});
  const SurfaceResult& mean = find(results, "tasks");
  EXPECT_NEAR(mean.estimate.value, 0.15, 1e-12);
  EXPECT_NEAR(mean.a, 0.55, 1e-12);
  EXPECT_EQ(mean.verdict, Verdict::kDiffers);
  EXPECT_EQ(find(results, "tasks/u").verdict, Verdict::kReproduced);
  EXPECT_EQ(find(results, "tasks/t").verdict, Verdict::kDiffers);
  EXPECT_EQ(find(results, "tasks/alone").reason, "only A has this task");
}

TEST_F(Surfaces, QuestionsPairByTheirNumberAndSetting) {
  TaskSurface shot = task("t", 100, 50);
  shot.fewshot = 5;
  EXPECT_NE(find(compare({shot}, {task("t", 100, 50)}), "tasks/t").reason.find("5 examples"),
            std::string::npos);
  const auto results = compare({task("t", 100, 50)}, {task("t", 80, 50)});
  EXPECT_EQ(find(results, "tasks/t").estimate.n, 80);
  EXPECT_TRUE(noted("20 questions"));
  TaskSurface twice = task("t", 10, 5);
  twice.documents[1].doc = 0;
  EXPECT_THROW(compare({twice}, {task("t", 10, 5)}), Error);
}

TEST_F(Surfaces, TokenKlIsHeldToItsTolerance) {
  KlSurface kl;
  kl.mean = 2e-3;
  for (std::int64_t d = 0; d < 30; ++d) {
    kl.by_document.push_back({.document = d, .tokens = 10 + d, .kl = 2e-3 * double(10 + d)});
  }
  EXPECT_EQ(judge_kl(kl, 1.5e-3, options_, pool_).verdict, Verdict::kDiffers);
  const SurfaceResult within = judge_kl(kl, 3e-3, options_, pool_);
  EXPECT_EQ(within.verdict, Verdict::kReproduced);
  EXPECT_NEAR(within.estimate.value, 2e-3, 1e-15);
  kl.by_document.resize(5);
  EXPECT_EQ(judge_kl(kl, 3e-3, options_, pool_).verdict, Verdict::kNotEnoughData);
  kl.by_document.clear();
  EXPECT_EQ(judge_kl(kl, 3e-3, options_, pool_).estimate.value, 2e-3);
  kl.by_document.assign(20, {.document = 0, .tokens = 4, .kl = std::nan("")});
  EXPECT_EQ(judge_kl(kl, 3e-3, options_, pool_).verdict, Verdict::kDiffers);
}

}  // namespace
}  // namespace lockstep
