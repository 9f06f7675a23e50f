#include "report/evidence.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "checkpoint/hf_config.h"
#include "data/scratch_directory.h"

namespace lockstep {
namespace {

constexpr const char* kBundle = R"({"format": "lockstep-bundle", "version": 1, "name": "ours",
  "producer": "another program", "precision": "bf16", "tokens_per_step": 64})";

FileSystem& fs() { return FileSystem::real(); }

// Expects an Error of this kind that names every one of the words.
void expect_refused(const std::string& path, ErrorKind kind,
                    const std::vector<std::string>& words) {
  try {
    (void)load_evidence(fs(), path);
    ADD_FAILURE() << path << " was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const auto& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

bool holds(const std::vector<std::string>& notes, const std::string& word) {
  for (const auto& note : notes) {
    if (note.find(word) != std::string::npos) return true;
  }
  return false;
}

std::string small_hf_config() {
  ModelConfig model;
  model.preset = Preset::kCustom;
  model.vocab_size = 300;
  model.eos_token_id = 0;
  model.pad_token_id = -1;
  return hf_config_json(model, StoredDType::kF32);
}

TEST(Curve, LaterLinesHoldAndNullIsNoNumber) {
  const ScratchDirectory files;
  const auto path = files.write("metrics.jsonl",
                                "{\"step\": 2, \"loss\": 5, \"tokens\": 128, \"skipped\": true}\n"
                                "{\"step\": 1, \"loss\": null, \"batch_digest\": \"ab\"}\n"
                                "{\"step\": 2, \"loss\": 4.5}\n"
                                "{\"step\": 3, \"lo");
  std::vector<std::string> notes;
  const auto curve = read_curve(fs(), path, notes);
  ASSERT_EQ(curve.size(), 2U);
  EXPECT_EQ(curve[0].step, 1);
  EXPECT_TRUE(std::isnan(curve[0].loss));
  EXPECT_EQ(curve[0].batch_digest, "ab");
  EXPECT_EQ(curve[1].loss, 4.5);
  EXPECT_FALSE(curve[1].skipped);
  EXPECT_TRUE(holds(notes, "torn"));
  EXPECT_TRUE(holds(notes, "1 lines log a step again"));
}

TEST(Curve, ADamagedLineIsNamed) {
  const ScratchDirectory files;
  files.write("bundle.json", kBundle);
  for (const char* line : {"{\"step\": 1,}", "[]", "{\"loss\": 1}", "{\"step\": \"1\"}",
                           "{\"step\": 1, \"loss\": \"low\"}", "{\"step\": 1, \"skipped\": 0}"}) {
    files.write("metrics.jsonl", concat("{\"step\": 1}\n", line, "\n"));
    expect_refused(files.path(), ErrorKind::kData, {"metrics.jsonl:2"});
  }
}

TEST(Evidence, OfABundleIsAllThatItHolds) {
  const ScratchDirectory files;
  files.write("bundle.json", kBundle);
  files.write("metrics.jsonl", "{\"step\": 1, \"loss\": 2}\n");
  files.write("evals/step-00000001.json", "{}");
  files.write("evals/last.json", "{}");
  files.write("checkpoints/step-00000001/config.json", small_hf_config());
  files.write("checkpoints/step-00000001/tokenizer.json", "{}");
  files.write("checkpoints/step-00000002/model.safetensors", "");
  files.write("logits/step-00000001.safetensors", "");
  const Evidence evidence = load_evidence(fs(), files.path());
  EXPECT_EQ(evidence.kind, EvidenceKind::kBundle);
  EXPECT_EQ(evidence.name, "ours");
  EXPECT_EQ(evidence.precision, "bf16");
  EXPECT_EQ(evidence.tokens_per_step, 64);
  EXPECT_EQ(evidence.vocab_size, 300);
  EXPECT_EQ(evidence.curve.size(), 1U);
  ASSERT_EQ(evidence.checkpoints.size(), 1U);
  EXPECT_EQ(evidence.tokenizer_path, evidence.checkpoints.at(1) + "/tokenizer.json");
  EXPECT_TRUE(evidence.evaluations.contains(1));
  EXPECT_TRUE(evidence.logits.contains(1));
  EXPECT_TRUE(holds(evidence.notes, "last.json"));
  EXPECT_TRUE(holds(evidence.notes, "step-00000002"));
}

TEST(Evidence, OfARunComesFromItsRecipe) {
  const ScratchDirectory files;
  files.write("recipe.toml",
              "[run]\nname = \"mine\"\n[data]\nmix = \"m\"\nsequence_length = 32\n"
              "[batch]\ninstances = 4\n[train]\nsteps = 2\nprecision = \"fp32\"\n");
  const Evidence evidence = load_evidence(fs(), files.path());
  EXPECT_EQ(evidence.kind, EvidenceKind::kRun);
  EXPECT_EQ(evidence.name, "mine");
  EXPECT_EQ(evidence.precision, "fp32");
  EXPECT_EQ(evidence.tokens_per_step, 128);
  EXPECT_TRUE(evidence.curve.empty());
  EXPECT_TRUE(holds(evidence.notes, "metrics.jsonl"));
  files.write("metrics.jsonl", "");
  EXPECT_TRUE(holds(load_evidence(fs(), files.path()).notes, "holds no step"));
}

TEST(Evidence, ACheckpointOfARunHasItsEvaluation) {
  const ScratchDirectory files;
  files.write("run/checkpoints/step-00000007/config.json", small_hf_config());
  files.write("run/evals/step-00000007.json", "{}");
  files.write("run/checkpoints/step-00000007/recipe.toml", "");
  const std::string path = files.path("run/checkpoints/step-00000007");
  for (const char* end : {"", "/"}) {
    const Evidence evidence = load_evidence(fs(), path + end);
    EXPECT_EQ(evidence.kind, EvidenceKind::kModel);
    EXPECT_EQ(evidence.checkpoints.at(7), path);
    EXPECT_EQ(evidence.recipe_path, path + "/recipe.toml");
    EXPECT_TRUE(evidence.evaluations.contains(7));
  }
}

TEST(Evidence, AModelThatDoesNotTellItsStepTakesItFromItsOneEvaluation) {
  const ScratchDirectory files;
  files.write("model/config.json", small_hf_config());
  EXPECT_TRUE(load_evidence(fs(), files.path("model")).checkpoints.contains(kUnknownStep));
  files.write("model/evals/step-00000300.json", "{}");
  EXPECT_TRUE(load_evidence(fs(), files.path("model")).checkpoints.contains(300));
}

TEST(Evidence, OtherPathsAreRefused) {
  const ScratchDirectory files;
  expect_refused(files.path("none"), ErrorKind::kInput, {"none", "does not exist"});
  expect_refused(files.write("file", "x"), ErrorKind::kInput, {"file", "not a directory"});
  expect_refused(files.path(), ErrorKind::kInput, {"recipe.toml", "bundle.json", "config.json"});
  files.write("bundle.json", R"({"format": "lockstep-bundle", "version": 2})");
  expect_refused(files.path(), ErrorKind::kInput, {"bundle.json", "version 2"});
  files.write("bundle.json", R"({"format": "lockstep-bundle", "version": 1})");
  expect_refused(files.path(), ErrorKind::kData, {"bundle.json", "name"});
  files.write("bundle.json", R"({"format": "another"})");
  expect_refused(files.path(), ErrorKind::kInput, {"bundle.json", "format"});
  files.write("bundle.json", R"({"format": 7})");
  expect_refused(files.path(), ErrorKind::kData, {"bundle.json"});
}

}  // namespace
}  // namespace lockstep
