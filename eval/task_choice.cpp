#include "eval/task_choice.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "io/compressed.h"

namespace lockstep {
namespace {

using Tasks = std::map<std::string, TaskSpec, std::less<>>;

Tasks known_tasks(FileSystem& fs, const std::string& directory) {
  Tasks tasks;
  for (const auto& [name, toml] : built_in_tasks()) {
    tasks[name] = parse_task(toml, name, concat("built-in ", name, ".toml"));
  }
  if (directory.empty()) return tasks;
  constexpr std::string_view kEnding = ".toml";
  for (const std::string& file : fs.list(directory)) {
    if (!file.ends_with(kEnding)) continue;
    const std::string path = join_path(directory, file);
    const std::string name = file.substr(0, file.size() - kEnding.size());
    tasks[name] = parse_task(read_text(fs, path, std::uint64_t{1} << 20), name, path);
  }
  return tasks;
}

TaskChoice choose(const Tasks& tasks, const std::string& name, std::string_view where) {
  if (const auto found = tasks.find(name); found != tasks.end()) {
    return {.name = name, .task = found->second};
  }
  std::vector<std::string> names;
  for (const auto& [known, task] : tasks) {
    names.push_back(known);
    for (const auto& [group, values] : task.groups) {
      names.push_back(known + "_" + group);
      for (const auto& value : values) names.push_back(concat(known, "_", value));
    }
    if (task.subtask.empty() || !name.starts_with(known + "_")) continue;
    const std::string rest = name.substr(known.size() + 1);
    if (const auto group = task.groups.find(rest); group != task.groups.end()) {
      return {.name = name, .task = task, .only = {group->second.begin(), group->second.end()}};
    }
    for (const auto& [group, values] : task.groups) {
      if (std::find(values.begin(), values.end(), rest) == values.end()) continue;
      return {.name = name, .task = task, .only = {rest}};
    }
  }
  std::string list;
  for (const auto& [known, task] : tasks) list += (list.empty() ? "" : ", ") + known;
  const std::string nearest = nearest_name(name, names);
  fail(ErrorKind::kConfig, where, ": no task \"", printable(name), "\"",
       nearest.empty() ? "" : "; nearest: " + nearest, "; known: ", list);
}

}  // namespace

const std::vector<std::string>& usual_tasks() {
  static const std::vector<std::string> names = {"mmlu",          "hellaswag",  "arc_easy",
                                                 "arc_challenge", "openbookqa", "piqa",
                                                 "boolq",         "winogrande"};
  return names;
}

std::vector<TaskChoice> choose_tasks(FileSystem& fs, std::span<const std::string> names,
                                     const std::string& directory, std::string_view where) {
  const Tasks tasks = known_tasks(fs, directory);
  std::vector<TaskChoice> choices;
  std::set<std::string> seen;
  for (const auto& name : names) {
    if (!seen.insert(name).second) {
      fail(ErrorKind::kConfig, where, ": ", printable(name), " is there twice");
    }
    choices.push_back(choose(tasks, name, where));
  }
  return choices;
}

TaskSurface task_surface(const std::string& name, std::int64_t fewshot,
                         std::span<const AnsweredSubtask> answers) {
  TaskSurface surface{.name = name, .fewshot = fewshot};
  std::vector<ChoiceCounts> counts;
  const bool divided = std::any_of(answers.begin(), answers.end(),
                                   [](const auto& subtask) { return !subtask.value.empty(); });
  for (const AnsweredSubtask& subtask : answers) {
    counts.push_back(subtask.counts());
    surface.n += counts.back().n;
    for (const AnsweredDocument& answer : subtask.documents) {
      const std::size_t gold = answer.document.gold;
      surface.documents.push_back({.doc = static_cast<std::int64_t>(answer.document.doc),
                                   .subtask = divided ? subtask.name : std::string(),
                                   .acc = answer.picks.acc == gold,
                                   .acc_norm = answer.picks.acc_norm == gold,
                                   .acc_bytes = answer.picks.acc_bytes == gold});
    }
  }
  const Share acc = pooled(counts, &ChoiceCounts::acc);
  surface.acc = acc.value;
  surface.acc_stderr = acc.error;
  surface.acc_norm = pooled(counts, &ChoiceCounts::acc_norm).value;
  surface.acc_bytes = pooled(counts, &ChoiceCounts::acc_bytes).value;
  return surface;
}

}  // namespace lockstep
