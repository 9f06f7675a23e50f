#include "eval/task_documents.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "io/compressed.h"

namespace lockstep {
namespace {

TaskSpec built_in(std::string_view wanted) {
  for (const auto& [name, toml] : built_in_tasks()) {
    if (name == wanted) return parse_task(toml, name, name);
  }
  ADD_FAILURE() << wanted;
  return {};
}

TaskDocument render(std::string_view task, const std::string& json) {
  return render_row(built_in(task), {parse_json(json, "f:1"), "f:1"});
}

class TaskDocuments : public testing::Test {
 protected:
  TaskDocuments() { std::filesystem::create_directories(directory_); }
  ~TaskDocuments() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& text) {
    CompressedWriter writer(fs_, directory_ + "/" + name, compression_of_name(name));
    writer.append(text);
    writer.commit();
  }
  // Rows {"s": subject, "q": subject + number}, `count` of each.
  static std::string Rows(const std::vector<std::string>& subjects, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      for (const auto& s : subjects) {
        text += concat("{\"s\": \"", s, "\", \"q\": \"", s, i, "\", \"g\": ", i % 2, "}\n");
      }
    }
    return text;
  }
  TaskQuestions Read(const TaskReadOptions& options = TaskReadOptions()) {
    return read_task(fs_, task_, directory_, options);
  }
  std::string Error(const TaskReadOptions& options = TaskReadOptions()) {
    try {
      static_cast<void>(Read(options));
    } catch (const lockstep::Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      std::string text = error.what();
      const std::size_t at = text.find(directory_);
      return at == std::string::npos ? text : text.replace(at, directory_.size(), "DIR");
    }
    return "no error";
  }

  FileSystem& fs_ = FileSystem::real();
  std::string directory_ = testing::TempDir() + "lockstep_tasks_" + std::to_string(::getpid());
  TaskSpec task_ = parse_task(
      "files = \"e\"\nfewshot_files = [\"t\", \"e\"]\nsubtask = \"s\"\n"
      "description = \"About {{s}}. \"\ncontext = \"{{q}}:\"\nchoices = [\"n\", \"y\"]\n"
      "gold = \"g\"\nmetrics = \"acc\"\n",
      "my", "my.toml");
};

// tests/golden/eval/hellaswag_raw.json: the harness's own clean-up, executed.
TEST(HellaSwag, CleansLikeTheHarness) {
  const std::string path =
      std::string(LOCKSTEP_SOURCE_DIR) + "/tests/golden/eval/hellaswag_raw.json";
  const Json golden = parse_json(read_text(FileSystem::real(), path, 1 << 20), path);
  ASSERT_EQ(golden["rows"].size(), 4U);
  const TaskSpec task = built_in("hellaswag");
  for (const Json& row : golden["rows"]) {
    const TaskDocument document = render_row(task, {row["raw"], "row"});
    EXPECT_EQ(document.contexts.front(), row["query"].get<std::string>());
    EXPECT_EQ(document.choices, row["choices"].get<std::vector<std::string>>());
    EXPECT_EQ(document.gold, row["gold"].get<std::size_t>());
  }
}

TEST(WinoGrande, ScoresTheSameTextAfterEachFilling) {
  const TaskDocument document = render(
      "winogrande",
      R"({"sentence": "A beat B so _ won it. ", "option1": "A", "option2": "B", "answer": "2"})");
  EXPECT_EQ(document.contexts, (std::vector<std::string>{"A beat B so A", "A beat B so B"}));
  EXPECT_EQ(document.choices, (std::vector<std::string>{"won it.", "won it."}));
  EXPECT_EQ(document.gold, 1U);
}

TEST(Arc, LabelsMayBeNumbers) {
  const TaskDocument document =
      render("arc_easy",
             R"({"question": "Q", "choices": {"text": ["a", "b", "c"], "label": ["1", "2", "3"]},
          "answerKey": "3"})");
  EXPECT_EQ(document.contexts.front(), "Question: Q\nAnswer:");
  EXPECT_EQ(document.gold, 2U);
}

TEST(BoolQ, TakesBothFormsOfTheAnswer) {
  EXPECT_EQ(render("boolq", R"({"passage": "P", "question": "q", "label": 1})").gold, 1U);
  EXPECT_EQ(render("boolq", R"({"passage": "P", "question": "q", "answer": true})").gold, 1U);
  EXPECT_EQ(render("boolq", R"({"passage": "P", "question": "q", "answer": false})").contexts[0],
            "P\nQuestion: q?\nAnswer:");
}

TEST(Tasks, TakeRenderedRows) {
  const TaskDocument document =
      render("hellaswag", R"({"query": "q [x]", "choices": ["a", " b"], "gold": 1})");
  EXPECT_EQ(document.contexts.front(), "q [x]");
  EXPECT_EQ(document.choices[1], " b");
}

TEST_F(TaskDocuments, DividesIntoSubtasks) {
  Write("e.jsonl.zst", Rows({"b", "a"}, 3));
  const TaskQuestions questions = Read({.limit = 2});
  ASSERT_EQ(questions.subtasks.size(), 2U);
  EXPECT_EQ(questions.subtasks[0].name, "my_b");
  EXPECT_EQ(questions.subtasks[1].documents.size(), 2U);
  EXPECT_EQ(questions.subtasks[1].documents[1].doc, 1U);
  EXPECT_EQ(questions.subtasks[1].documents[1].contexts[0], "About a. a1:");
  EXPECT_EQ(Read({.only = {"a"}}).subtasks.size(), 1U);
}

TEST_F(TaskDocuments, PutsExamplesOfTheSameSubtaskBetweenDescriptionAndQuestion) {
  Write("e.jsonl", Rows({"a"}, 1));
  Write("t.jsonl.gz", Rows({"b", "a"}, 3));
  const auto first = [&](const FewshotOptions& fewshot) {
    return Read({.fewshot = fewshot}).subtasks[0].documents[0].contexts[0];
  };
  EXPECT_EQ(first({.count = 2, .sampler = FewshotSampler::kFirst}),
            "About a. a0: n\n\na1: y\n\na0:");
  EXPECT_EQ(first({.ids = {2, 1}}), "About a. a2: n\n\na1: y\n\na0:");
  // random.Random(1234).sample(range(3), 3) == [1, 0, 2]
  EXPECT_EQ(first({.count = 3}), "About a. a1: y\n\na0: n\n\na2: n\n\na0:");
}

TEST_F(TaskDocuments, AQuestionIsNeverItsOwnExample) {
  Write("e.jsonl", Rows({"a"}, 4));
  const TaskQuestions questions =
      Read({.fewshot = {.count = 2, .sampler = FewshotSampler::kFirst}});
  EXPECT_NE(questions.fewshot_file.find("/e.jsonl"), std::string::npos);
  EXPECT_EQ(questions.subtasks[0].documents[0].contexts[0], "About a. a1: y\n\na2: n\n\na0:");
  EXPECT_EQ(questions.subtasks[0].documents[3].contexts[0], "About a. a0: n\n\na1: y\n\na3:");
}

TEST_F(TaskDocuments, NamesFileLineAndField) {
  EXPECT_EQ(Error(), "DIR: no data for task my: want e.jsonl (or .gz, .zst)");
  const auto error_of = [&](const std::string& text) {
    Write("e.jsonl", text);
    return Error();
  };
  EXPECT_EQ(error_of(""), "DIR/e.jsonl: no questions for task my");
  EXPECT_EQ(error_of("\n[1]\n"), "DIR/e.jsonl:2: array, want an object");
  EXPECT_EQ(error_of("{\"q\": \"a\", \"g\": 1}"), "DIR/e.jsonl:1: no field \"s\"");
  EXPECT_EQ(error_of("{\"s\": \"a\", \"q\": \"a\"}"), "DIR/e.jsonl:1: no field \"g\"");
  EXPECT_EQ(error_of("{\"s\": \"a\", \"q\": \"a\", \"g\": 2}"),
            "DIR/e.jsonl:1: field \"g\": 2, want one of the 2 choices");
  EXPECT_EQ(error_of("{\"s\": \"a\", \"q\": \"a\", \"g\": \"\"}"),
            "DIR/e.jsonl:1: field \"g\": \"\", want the index of the right choice");
  EXPECT_EQ(error_of("{\"s\": \"a\", \"q\": {}, \"g\": 0}"),
            "DIR/e.jsonl:1: field \"q\": object, want text or an integer");
  Write("e.jsonl", Rows({"a"}, 2));
  EXPECT_EQ(Error({.fewshot = {.count = 2}}),
            "my_a: 2 examples for each question, but only 2 are there with the question itself");
  EXPECT_EQ(Error({.fewshot = {.ids = {5}}}), "my_a: example 5 was asked for, there are 2");
}

}  // namespace
}  // namespace lockstep
