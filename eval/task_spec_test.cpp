#include "eval/task_spec.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr const char* kGood =
    "files = \"a.test\"\ncontext = \"{{q}}\"\nchoices = [\"x\", \"y\"]\ngold = \"g\"\n"
    "metrics = \"acc\"\n";

std::string error_of(const std::string& toml) {
  try {
    static_cast<void>(parse_task(toml, "a", "a.toml"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    return error.what();
  }
  return "no error";
}

TEST(TaskSpec, EveryBuiltInTaskIsWhole) {
  std::vector<std::string> names;
  for (const auto& [name, toml] : built_in_tasks()) {
    names.emplace_back(name);
    EXPECT_NO_THROW(static_cast<void>(parse_task(toml, name, name))) << name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"arc_challenge", "arc_easy", "boolq", "hellaswag",
                                             "mmlu", "openbookqa", "piqa", "winogrande"}));
}

TEST(TaskSpec, MmluGroupsHoldEachOfThe57SubjectsOnce) {
  for (const auto& [name, toml] : built_in_tasks()) {
    if (std::string_view(name) != "mmlu") continue;
    const TaskSpec task = parse_task(toml, name, name);
    EXPECT_EQ(task.groups.size(), 4U);
    std::vector<std::string> all;
    for (const auto& [group, subjects] : task.groups) {
      all.insert(all.end(), subjects.begin(), subjects.end());
    }
    EXPECT_EQ(all.size(), 57U);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  }
}

TEST(TaskSpec, HasDefaults) {
  const TaskSpec task = parse_task(kGood, "a", "a.toml");
  EXPECT_EQ(task.files, std::vector<std::string>{"a.test"});
  EXPECT_EQ(task.target_delimiter, " ");
  EXPECT_EQ(task.fewshot_delimiter, "\n\n");
  EXPECT_FALSE(task.fewshot_first);
}

TEST(TaskSpec, NamesFileLineAndKeyOfWhatIsWrong) {
  const std::string good = kGood;
  EXPECT_EQ(error_of(good + "contxt_clean = \"strip\"\n"),
            "a.toml:6: unknown key \"contxt_clean\"; nearest: context_clean");
  EXPECT_EQ(error_of("context = \"\"\n"), "a.toml: files: missing");
  EXPECT_EQ(error_of(good + "subtask = 3\n"), "a.toml:6: subtask: an integer, want a string");
  EXPECT_EQ(error_of(good + "contexts = [\"{{a}}\"]\n"),
            "a.toml:6: contexts: give one of context and contexts");
  EXPECT_EQ(error_of(good + "choices_field = \"c\"\n"),
            "a.toml:6: choices_field: give one of choices and choices_field");
  EXPECT_EQ(error_of(good + "fewshot_sampler = \"last\"\n"),
            "a.toml:6: fewshot_sampler: \"last\": want random or first");
  EXPECT_EQ(
      error_of(good + "fewshot_files = \"../secret\"\n"),
      "a.toml:6: fewshot_files: \"../secret\": want the name of a file in the data directory, "
      "without its ending");
  EXPECT_NE(error_of(good + "groups.x = [\"a\"]\n").find("no subtasks to group"),
            std::string::npos);
  EXPECT_NE(error_of(good + "choice_clean = \"shout\"\n")
                .find("a.toml:6: choice_clean: unknown step \"shout\""),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
