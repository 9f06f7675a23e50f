#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/evaluation_file.h"
#include "eval/task_eval.h"
#include "eval/task_spec.h"
#include "io/file.h"

namespace lockstep {

// A task, or some of its subtasks, under the name by which it was asked for.
struct TaskChoice {
  std::string name;
  TaskSpec task;
  std::set<std::string> only = {};  // values of the subtasks; empty: all
};

// The eight that a pre-trained model is usually held against, in their usual order.
[[nodiscard]] const std::vector<std::string>& usual_tasks();

// Tasks by name: "mmlu", "mmlu_stem" (a group), "mmlu_anatomy" (a subtask). Known are the built-in
// ones and the TOML files of `directory` (may be empty), which replace built-in ones of their name.
// Throws kConfig, beginning with `where`, for a name that is unknown or there twice.
[[nodiscard]] std::vector<TaskChoice> choose_tasks(FileSystem& fs,
                                                   std::span<const std::string> names,
                                                   const std::string& directory,
                                                   std::string_view where);

// What the evaluation file holds of a task: subtasks weighted by size, every answer.
[[nodiscard]] TaskSurface task_surface(const std::string& name, std::int64_t fewshot,
                                       std::span<const AnsweredSubtask> answers);

}  // namespace lockstep
