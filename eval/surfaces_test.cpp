#include "eval/surfaces.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(C4Domain, IsTheNamedOneElseTheFirstThatLooksLikeIt) {
  HeldoutSurface heldout;
  heldout.domains = {{.label = "books"}, {.label = "my-C4_en"}, {.label = "c4"}};
  EXPECT_EQ(c4_domain(heldout, "")->label, "my-C4_en");
  EXPECT_EQ(c4_domain(heldout, "c4")->label, "c4");
  EXPECT_EQ(c4_domain(heldout, "c5"), nullptr);
  heldout.domains = {{.label = "books"}, {.label = "code"}};
  EXPECT_EQ(c4_domain(heldout, "")->label, "books");
  heldout.domains.clear();
  EXPECT_EQ(c4_domain(heldout, ""), nullptr);
}

TEST(TaskChoices, AreTasksGroupsAndSubtasks) {
  const std::vector<std::string> names = {"mmlu", "mmlu_stem", "mmlu_anatomy", "boolq"};
  const auto choices = choose_tasks(FileSystem::real(), names, "", "--tasks");
  ASSERT_EQ(choices.size(), 4U);
  EXPECT_TRUE(choices[0].only.empty());
  EXPECT_GT(choices[1].only.size(), 10U);
  EXPECT_EQ(choices[2].only, std::set<std::string>{"anatomy"});
  EXPECT_EQ(choices[3].task.name, "boolq");
  EXPECT_EQ(choose_tasks(FileSystem::real(), usual_tasks(), "", "").size(), 8U);
}

TEST(TaskChoices, RefuseWhatIsUnknownOrThereTwice) {
  const auto error_of = [](const std::vector<std::string>& names) -> std::string {
    try {
      static_cast<void>(choose_tasks(FileSystem::real(), names, "", "--tasks"));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of({"boolq", "boolq"}), "--tasks: boolq is there twice");
  EXPECT_EQ(error_of({"mmlu_anatomi"})
                .find("--tasks: no task \"mmlu_anatomi\"; nearest: "
                      "mmlu_anatomy; known: arc_challenge"),
            0U);
}

TEST(TaskSurface, WeighsSubtasksBySizeAndKeepsEveryAnswer) {
  const auto answer = [](std::size_t doc, std::size_t picked) {
    AnsweredDocument document;
    document.document.doc = doc;
    document.document.gold = 1;
    document.picks = {.acc = picked, .acc_norm = 0, .acc_bytes = 1};
    return document;
  };
  const std::vector<AnsweredSubtask> answers = {
      {.name = "t_a", .value = "a", .documents = {answer(0, 1), answer(1, 1), answer(2, 0)}},
      {.name = "t_b", .value = "b", .documents = {answer(0, 0)}}};
  const TaskSurface surface = task_surface("t", 5, answers);
  EXPECT_EQ(surface.n, 4);
  EXPECT_EQ(surface.fewshot, 5);
  EXPECT_DOUBLE_EQ(surface.acc, 0.5);
  EXPECT_EQ(surface.acc_norm, 0);
  EXPECT_EQ(surface.acc_bytes, 1);
  ASSERT_EQ(surface.documents.size(), 4U);
  EXPECT_TRUE(surface.documents[1].acc);
  EXPECT_FALSE(surface.documents[1].acc_norm);
  EXPECT_EQ(surface.documents[3].subtask, "t_b");
  EXPECT_TRUE(task_surface("t", 0,
                           std::vector<AnsweredSubtask>{
                               {.name = "t", .value = "", .documents = {answer(0, 0)}}})
                  .documents[0]
                  .subtask.empty());
}

}  // namespace
}  // namespace lockstep
