#include "eval/task_eval.h"

#include "base/error.h"

namespace lockstep {
namespace {

Question encode_document(AnsweredDocument& answer, const std::string& where,
                         const Tokenizer& tokenizer, std::int32_t prefix, std::int64_t max_length) {
  Question question;
  const TaskDocument& document = answer.document;
  for (std::size_t i = 0; i < document.choices.size(); ++i) {
    const std::string& context = document.contexts[document.contexts.size() == 1 ? 0 : i];
    EncodedPair pair = encode_pair(tokenizer, context, answer.continuations[i], prefix);
    question.push_back(score_request(pair, max_length, where));
    answer.context_tokens.push_back(std::ssize(pair.context));
    answer.continuation_ids.push_back(std::move(pair.continuation));
  }
  return question;
}

}  // namespace

ChoiceCounts AnsweredSubtask::counts() const {
  ChoiceCounts counts;
  for (const auto& each : documents) counts.add(each.picks, each.document.gold);
  return counts;
}

std::int64_t EncodedTask::tokens() const {
  std::int64_t sum = 0;
  for (const Question& question : questions) {
    for (const ScoreRequest& request : question) sum += std::ssize(request.input);
  }
  return sum;
}

EncodedTask encode_task(const TaskSpec& task, TaskQuestions questions, const Tokenizer& tokenizer,
                        std::int32_t prefix, std::int64_t max_length, ThreadPool& pool) {
  EncodedTask out;
  for (Subtask& subtask : questions.subtasks) {
    AnsweredSubtask answered{subtask.name, subtask.value, {}};
    for (TaskDocument& document : subtask.documents) {
      AnsweredDocument answer;
      answer.document = std::move(document);
      for (const auto& choice : answer.document.choices) {
        answer.continuations.push_back(task.target_delimiter + choice);
      }
      answered.documents.push_back(std::move(answer));
    }
    const std::size_t first = out.questions.size();
    out.questions.resize(first + answered.documents.size());
    pool.parallel_for(std::ssize(answered.documents), [&](std::int64_t index, int) {
      const auto i = static_cast<std::size_t>(index);
      AnsweredDocument& answer = answered.documents[i];
      const std::string where = concat(answered.name, ", document ", answer.document.doc);
      out.questions[first + i] = encode_document(answer, where, tokenizer, prefix, max_length);
    });
    out.subtasks.push_back(std::move(answered));
  }
  return out;
}

std::vector<AnsweredSubtask> answer_task(Model& model, EncodedTask task,
                                         const ScoreOptions& options) {
  auto scores = score_questions(model, task.questions, options);
  std::size_t question = 0;
  for (AnsweredSubtask& subtask : task.subtasks) {
    for (AnsweredDocument& answer : subtask.documents) {
      answer.scores = std::move(scores[question++]);
      answer.picks = pick(answer.scores, answer.document.choices);
    }
  }
  return std::move(task.subtasks);
}

}  // namespace lockstep
