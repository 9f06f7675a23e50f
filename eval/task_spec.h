#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "eval/text_template.h"

namespace lockstep {

// A multiple-choice task as its TOML file describes it (docs/guide.md, "Add a task").
struct TaskSpec {
  std::string name;                        // the file's name without ".toml"
  std::string origin;                      // the file, for errors
  std::vector<std::string> files;          // data sets by name without ending; the first found
  std::vector<std::string> fewshot_files;  // the same, for examples
  bool fewshot_first = false;              // the first n instead of a seeded sample
  TextTemplate description;                // before everything else; may be empty
  TextTemplate context;
  std::vector<TextTemplate> contexts;  // one a choice, where it is the context that differs
  std::vector<TextStep> context_clean;
  std::vector<TextTemplate> choices;
  std::string choices_field;  // an array of texts, instead of `choices`
  std::vector<TextStep> choice_clean;
  std::vector<std::string> gold;         // fields; the first that a row has
  std::vector<std::string> gold_labels;  // what the answer is looked up in; none: it is an index
  std::string gold_labels_field;         // the same as a field of the row
  std::string target_delimiter = " ";
  std::string fewshot_delimiter = "\n\n";
  std::vector<std::string> metrics;  // that the task is usually reported by; the first counts
  std::string subtask;               // a field that divides the file into subtasks
  std::map<std::string, std::vector<std::string>> groups;  // subtasks, by the field's values
};

// Throws kConfig naming file, line and key.
[[nodiscard]] TaskSpec parse_task(std::string_view toml, std::string_view name,
                                  std::string_view origin);

// A task that comes with the program, in TOML.
struct BuiltInTask {
  const char* name;
  const char* toml;
};
// Sorted by name.
[[nodiscard]] std::vector<BuiltInTask> built_in_tasks();

}  // namespace lockstep
