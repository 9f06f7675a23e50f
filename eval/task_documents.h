#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "eval/task_spec.h"
#include "io/file.h"

namespace lockstep {

// One question as the model will see it.
struct TaskDocument {
  std::size_t doc = 0;                // in its subtask, from 0, in the order of the file
  std::vector<std::string> contexts;  // one for all choices, or one each
  std::vector<std::string> choices;   // without the delimiter before them
  std::size_t gold = 0;
};

struct Subtask {
  std::string name;   // "mmlu_anatomy"; the task's when it has no subtasks
  std::string value;  // of the field that divides: "anatomy"; empty
  std::vector<TaskDocument> documents;
};

struct TaskQuestions {
  std::string file;
  std::string fewshot_file;       // empty without examples
  std::vector<Subtask> subtasks;  // in the order in which the file first has them
};

enum class FewshotSampler { kOfTask, kFirst, kRandom };

// Examples before each question, of the same subtask. kRandom draws as lm-evaluation-harness does:
// one generator a subtask, one draw a question in their order. A question is never its own example.
struct FewshotOptions {
  std::uint32_t count = 0;
  FewshotSampler sampler = FewshotSampler::kOfTask;
  std::vector<std::uint32_t> ids = {};  // these instead, by their place in the subtask, from 0
  std::uint32_t seed = 1234;
  [[nodiscard]] bool any() const { return count > 0 || !ids.empty(); }
};

struct TaskReadOptions {
  FewshotOptions fewshot = {};
  std::size_t limit = 0;            // questions of each subtask; 0: all
  std::set<std::string> only = {};  // values of the subtasks; empty: all
};

// Reads a task's questions from `directory`, FILE.jsonl, .jsonl.gz or .jsonl.zst: rows with the
// fields that the task names, or rendered ones: query, choices (texts) and gold (index). Throws
// kInput naming file, line and field.
[[nodiscard]] TaskQuestions read_task(FileSystem& fs, const TaskSpec& task,
                                      const std::string& directory, const TaskReadOptions& options);

// The same for one row, without description and examples.
[[nodiscard]] TaskDocument render_row(const TaskSpec& task, const DataRow& row);

}  // namespace lockstep
