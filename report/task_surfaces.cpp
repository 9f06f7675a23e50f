#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "report/surface_rules.h"
#include "report/surfaces.h"

namespace lockstep {
namespace {

using Answers = std::map<std::pair<std::string, std::int64_t>, bool>;

Answers index_answers(const TaskSurface& task, std::string_view side) {
  Answers answers;
  for (const auto& answer : task.documents) {
    if (!answers.emplace(std::pair{answer.subtask, answer.doc}, answer.acc).second) {
      fail(ErrorKind::kData, side, "'s evaluation: document ", answer.doc, " of task ",
           printable(task.name), " is listed twice");
    }
  }
  return answers;
}

const TaskSurface* find_task(const std::vector<TaskSurface>& tasks, const std::string& name) {
  const auto found = std::find_if(tasks.begin(), tasks.end(),
                                  [&](const TaskSurface& task) { return task.name == name; });
  return found == tasks.end() ? nullptr : &*found;
}

SurfaceResult compare_task(const TaskSurface& a, const TaskSurface& b,
                           const SurfaceOptions& options, std::vector<std::string>& notes) {
  const std::string surface = "tasks/" + a.name;
  SurfaceResult result = no_data(surface, options.tolerances.of(surface), "");
  if (a.fewshot != b.fewshot) {
    result.reason = concat("A was asked with ", a.fewshot, " examples, B with ", b.fewshot);
    return result;
  }
  const Answers ours = index_answers(a, "A");
  const Answers theirs = index_answers(b, "B");
  PairedAnswers paired;
  std::int64_t right_a = 0;
  std::int64_t right_b = 0;
  for (const auto& [key, right] : ours) {
    const auto found = theirs.find(key);
    if (found == theirs.end()) continue;
    ++paired.n;
    right_a += right ? 1 : 0;
    right_b += found->second ? 1 : 0;
    if (right && !found->second) ++paired.only_a;
    if (!right && found->second) ++paired.only_b;
  }
  const std::int64_t unpaired = std::ssize(ours) + std::ssize(theirs) - 2 * paired.n;
  if (unpaired > 0) {
    notes.push_back(concat("tasks: ", printable(a.name), ": ", unpaired,
                           " questions were answered by one side only and do not count"));
  }
  result.estimate = accuracy_difference(paired);
  if (paired.n > 0) {
    result.a = static_cast<double>(right_a) / static_cast<double>(paired.n);
    result.b = static_cast<double>(right_b) / static_cast<double>(paired.n);
  }
  decide(result, kMinDocuments, "questions");
  return result;
}

SurfaceResult mean_over(const std::vector<SurfaceResult>& tasks, const SurfaceOptions& options) {
  SurfaceResult mean = no_data("tasks", options.tolerances.of("tasks"), "");
  std::vector<Estimate> estimates;
  double a = 0;
  double b = 0;
  for (const SurfaceResult& task : tasks) {
    if (task.estimate.n == 0) continue;
    estimates.push_back(task.estimate);
    a += task.a;
    b += task.b;
  }
  mean.estimate = mean_of(estimates);
  if (!estimates.empty()) {
    mean.a = a / static_cast<double>(estimates.size());
    mean.b = b / static_cast<double>(estimates.size());
  }
  decide(mean, kMinDocuments, "questions");
  return mean;
}

}  // namespace

std::vector<SurfaceResult> compare_tasks(const std::vector<TaskSurface>* a,
                                         const std::vector<TaskSurface>* b,
                                         const SurfaceOptions& options,
                                         std::vector<std::string>& notes) {
  const bool no_a = a == nullptr || a->empty();
  const bool no_b = b == nullptr || b->empty();
  if (no_a || no_b) {
    return {no_data(
        "tasks", options.tolerances.of("tasks"),
        concat(no_a && no_b ? "A and B have" : (no_a ? "A has" : "B has"), " no task results"))};
  }
  std::vector<SurfaceResult> tasks;
  const auto alone = [&](const std::string& name, std::string_view side) {
    const std::string surface = "tasks/" + name;
    tasks.push_back(
        no_data(surface, options.tolerances.of(surface), concat("only ", side, " has this task")));
  };
  for (const TaskSurface& task : *a) {
    const TaskSurface* other = find_task(*b, task.name);
    if (other == nullptr) {
      alone(task.name, "A");
    } else {
      tasks.push_back(compare_task(task, *other, options, notes));
    }
  }
  for (const TaskSurface& task : *b) {
    if (find_task(*a, task.name) == nullptr) alone(task.name, "B");
  }
  std::vector<SurfaceResult> results = {mean_over(tasks, options)};
  results.insert(results.end(), tasks.begin(), tasks.end());
  return results;
}

}  // namespace lockstep
