#include "eval/evaluation_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

Evaluation Full() {
  Evaluation evaluation;
  evaluation.model = {.name = "run", .step = 300, .precision = "fp32", .producer = "lockstep"};
  HeldoutSurface heldout{.data_fingerprint = "abc", .sequence_length = 512};
  heldout.domains.push_back({.label = "c4_en",
                             .documents = 2,
                             .tokens = 30,
                             .targets = 28,
                             .bytes = 0,
                             .loss = 1.0 / 3,
                             .perplexity = 1.5,
                             .bits_per_byte = std::nan(""),
                             .loss_olmo_core = 0.3,
                             .perplexity_olmo_core = 1.4});
  heldout.by_document.push_back(
      {.label = "c4_en", .document = 7, .targets = 28, .bytes = 100, .ce = 0.1 + 0.2});
  evaluation.heldout = heldout;
  evaluation.tasks = {{.name = "boolq",
                       .fewshot = 5,
                       .n = 1,
                       .acc = 1,
                       .acc_stderr = std::nan(""),
                       .acc_norm = 0,
                       .acc_bytes = 1,
                       .documents = {{.doc = 3, .subtask = "", .acc = true, .acc_bytes = true}}}};
  evaluation.kl = KlSurface{.reference = "other",
                            .vocab = 8192,
                            .tokens = 64,
                            .mean = 1e-5,
                            .max = 1e-3,
                            .p50 = 1e-6,
                            .p90 = 2e-6,
                            .p99 = 3e-6,
                            .p99_9 = 4e-6,
                            .top1 = 0.99,
                            .top5 = 0.98,
                            .buckets = {{.first = 2, .last = 3, .tokens = 8, .mean = 1e-5}},
                            .by_document = {{.document = 1, .tokens = 64, .kl = 6.4e-4}}};
  return evaluation;
}

std::string ErrorOf(const std::string& text) {
  try {
    static_cast<void>(parse_evaluation(text, "FILE"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }
  return "no error";
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(EvaluationFile, GivesBackEveryBit) {
  const std::string text = to_json_text(Full());
  const Evaluation read = parse_evaluation(text, "FILE");
  EXPECT_EQ(to_json_text(read), text);
  EXPECT_EQ(read.heldout->by_document[0].ce, 0.1 + 0.2);
  EXPECT_EQ(read.heldout->domains[0].loss, 1.0 / 3);
  EXPECT_TRUE(std::isnan(read.heldout->domains[0].bits_per_byte));
  EXPECT_EQ(read.model.step, 300);
  EXPECT_TRUE(read.tasks->front().documents[0].acc_bytes);
  EXPECT_FALSE(read.tasks->front().documents[0].acc_norm);
  EXPECT_EQ(read.tasks->front().fewshot, 5);
  EXPECT_EQ(read.kl->p99_9, 4e-6);
  EXPECT_EQ(read.kl->buckets[0].last, 3);
}

TEST(EvaluationFile, SurfacesMayBeAbsent) {
  Evaluation evaluation = Full();
  evaluation.heldout.reset();
  evaluation.tasks.reset();
  evaluation.kl.reset();
  const Evaluation read = parse_evaluation(to_json_text(evaluation), "FILE");
  EXPECT_FALSE(read.heldout || read.tasks || read.kl);
}

TEST(EvaluationFile, DamageNamesTheKey) {
  const std::string text = to_json_text(Full());
  EXPECT_EQ(ErrorOf(Replaced(text, "\"version\":1", "\"version\":2")),
            "FILE: version: 2, want 1, which this program reads");
  EXPECT_EQ(ErrorOf(Replaced(text, "lockstep-evaluation", "other")),
            "FILE: format: \"other\", want \"lockstep-evaluation\"");
  EXPECT_EQ(ErrorOf(Replaced(text, "\"fp32\"", "\"fp16\"")),
            "FILE: model: precision: \"fp16\", want \"fp32\" or \"bf16\"");
  EXPECT_EQ(ErrorOf(Replaced(text, "\"step\":300", "\"step\":-1")),
            "FILE: model: step: -1, want an integer from 0 on");
  EXPECT_EQ(ErrorOf(Replaced(text, "\"step\":300", "\"step\":1.5")),
            "FILE: model: step: 1.5, want an integer from 0 on");
  EXPECT_EQ(ErrorOf(Replaced(text, "\"ce\"", "\"cf\"")),
            "FILE: heldout: by_document[0]: no key \"ce\"");
  EXPECT_EQ(ErrorOf(Replaced(text, "\"acc\":1,\"acc_norm\"", "\"acc\":2,\"acc_norm\"")),
            "FILE: tasks[0]: documents[0]: acc: 2, want 0 or 1");
  EXPECT_EQ(ErrorOf(Replaced(text, "\"top5\":0.98", "\"top5\":\"0.98\"")),
            "FILE: kl: top5: \"0.98\", want a number or null");
  EXPECT_EQ(ErrorOf(Replaced(text, "\"top5\":0.98", "\"top5\":0.98,\"top9\":1")),
            "FILE: kl: unknown key \"top9\"");
  EXPECT_EQ(ErrorOf("[]"), "FILE: array, want an object");
  EXPECT_NE(ErrorOf(text.substr(0, text.size() / 2)).find("not valid JSON"), std::string::npos);
}

TEST(EvaluationFile, MergingKeepsWhatWasNotEvaluatedAgain) {
  Evaluation added = Full();
  added.heldout.reset();
  added.kl->mean = 5;
  added.tasks = {{.name = "piqa"}, {.name = "boolq", .n = 9}};
  const Evaluation merged = merge(Full(), added, "FILE");
  EXPECT_EQ(merged.heldout->data_fingerprint, "abc");
  EXPECT_EQ(merged.kl->mean, 5);
  ASSERT_EQ(merged.tasks->size(), 2U);
  EXPECT_EQ(merged.tasks->at(0).name, "boolq");
  EXPECT_EQ(merged.tasks->at(0).n, 9);
  EXPECT_EQ(merged.tasks->at(1).name, "piqa");
  added.tasks.reset();
  EXPECT_EQ(merge(Full(), added, "FILE").tasks->front().name, "boolq");
}

TEST(EvaluationFile, AnotherModelIsNotMerged) {
  Evaluation added = Full();
  added.model.step = 301;
  try {
    static_cast<void>(merge(Full(), added, "FILE"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_EQ(std::string(error.what()),
              "FILE: holds run at step 300 in fp32, not run at step 301 in fp32; name another file "
              "with -o");
  }
}

}  // namespace
}  // namespace lockstep
