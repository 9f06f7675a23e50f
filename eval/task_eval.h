#pragma once

#include <functional>
#include <string>
#include <vector>

#include "eval/choice_metrics.h"
#include "eval/task_documents.h"

namespace lockstep {

// A question and the model's answer to it.
struct AnsweredDocument {
  TaskDocument document;
  std::vector<std::string> continuations;  // delimiter and choice
  std::vector<std::vector<std::int32_t>> continuation_ids;
  std::vector<std::int64_t> context_tokens;  // before any cut on the left
  std::vector<Score> scores;                 // empty before scoring
  Picks picks;
};

struct AnsweredSubtask {
  std::string name;
  std::string value;
  std::vector<AnsweredDocument> documents;
  [[nodiscard]] ChoiceCounts counts() const;
};

// A task between reading and scoring. Every index of `questions` is a document, subtasks one after
// another.
struct EncodedTask {
  std::vector<AnsweredSubtask> subtasks;
  std::vector<Question> questions;
  [[nodiscard]] std::int64_t tokens() const;  // of all inputs: what progress is measured by
};

// Encodes by the rule of encode_pair() on the pool's threads. Throws kInput naming the subtask and
// the document.
[[nodiscard]] EncodedTask encode_task(const TaskSpec& task, TaskQuestions questions,
                                      const Tokenizer& tokenizer, std::int32_t prefix,
                                      std::int64_t max_length, ThreadPool& pool);

// The answers, in the order of the documents. `task.questions` is used up.
[[nodiscard]] std::vector<AnsweredSubtask> answer_task(Model& model, EncodedTask task,
                                                       const ScoreOptions& options);

}  // namespace lockstep
