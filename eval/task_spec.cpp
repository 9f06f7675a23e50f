#include "eval/task_spec.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "config/toml_text.h"

namespace lockstep {
namespace {

// Takes keys out of a task file; what nobody took is unknown.
class Keys {
 public:
  Keys(std::string_view toml, std::string_view origin)
      : settings_(parse_settings(toml, origin)), origin_(origin) {}

  [[nodiscard]] bool has(const std::string& key) const { return settings_.count(key) > 0; }
  [[nodiscard]] std::string where(const std::string& key) const {
    const auto found = settings_.find(key);
    return concat(found == settings_.end() ? origin_ : found->second.origin, ": ", key);
  }

  std::string text(const std::string& key, std::string fallback) {
    const Setting* setting = take(key);
    return setting == nullptr ? std::move(fallback) : as_text(setting->value, key);
  }

  // A text counts as a list of one.
  std::vector<std::string> texts(const std::string& key) {
    const Setting* setting = take(key);
    std::vector<std::string> out;
    if (setting == nullptr) return out;
    const auto* items = std::get_if<std::vector<Value>>(&setting->value.data);
    if (items == nullptr) return {as_text(setting->value, key)};
    for (const Value& item : *items) out.push_back(as_text(item, key));
    return out;
  }

  std::vector<std::string> required_texts(const std::string& key) {
    auto out = texts(key);
    if (out.empty()) fail(ErrorKind::kConfig, where(key), ": missing");
    return out;
  }

  [[nodiscard]] std::vector<std::string> names_in(const std::string& table) {
    std::vector<std::string> names;
    known_.insert(table);
    for (const auto& [key, setting] : settings_) {
      if (key.starts_with(table + ".")) names.push_back(key.substr(table.size() + 1));
    }
    return names;
  }

  void refuse_others() const {
    const std::vector<std::string> known(known_.begin(), known_.end());
    for (const auto& [key, setting] : settings_) {
      if (known_.count(key) > 0) continue;
      const std::string nearest = nearest_name(key, known);
      fail(ErrorKind::kConfig, setting.origin, ": unknown key \"", printable(key), "\"",
           nearest.empty() ? "" : "; nearest: ", nearest);
    }
  }

 private:
  const Setting* take(const std::string& key) {
    known_.insert(key);
    const auto found = settings_.find(key);
    if (found == settings_.end()) return nullptr;
    if (found->second.is_table) fail(ErrorKind::kConfig, where(key), ": a table, want a value");
    return &found->second;
  }

  [[nodiscard]] std::string as_text(const Value& value, const std::string& key) const {
    const auto* text = std::get_if<std::string>(&value.data);
    if (text == nullptr) {
      fail(ErrorKind::kConfig, where(key), ": ", kind_of(value), ", want a string");
    }
    return *text;
  }

  Settings settings_;
  std::string origin_;
  std::set<std::string> known_;
};

std::vector<TextTemplate> templates(Keys& keys, const std::string& key) {
  std::vector<TextTemplate> out;
  for (const auto& text : keys.texts(key)) out.emplace_back(text, keys.where(key));
  return out;
}

std::vector<TextStep> steps(Keys& keys, const std::string& key) {
  std::vector<TextStep> out;
  for (const auto& text : keys.texts(key)) out.emplace_back(text, keys.where(key));
  return out;
}

void check_names(const Keys& keys, const std::string& key, const std::vector<std::string>& files) {
  for (const auto& file : files) {
    if (file.empty() || file.find('/') != std::string::npos || file.front() == '.') {
      fail(ErrorKind::kConfig, keys.where(key), ": \"", printable(file),
           "\": want the name of a file in the data directory, without its ending");
    }
  }
}

void check(const Keys& keys, const TaskSpec& task, bool has_context) {
  if (has_context == !task.contexts.empty()) {
    fail(ErrorKind::kConfig, keys.where(has_context ? "contexts" : "context"),
         ": give one of context and contexts");
  }
  if (task.choices.empty() == task.choices_field.empty()) {
    fail(ErrorKind::kConfig, keys.where(task.choices.empty() ? "choices" : "choices_field"),
         ": give one of choices and choices_field");
  }
  if (!task.contexts.empty() && task.choices.size() != 1) {
    fail(ErrorKind::kConfig, keys.where("choices"),
         ": with contexts, want the one continuation of them all");
  }
  if (!task.gold_labels.empty() && !task.gold_labels_field.empty()) {
    fail(ErrorKind::kConfig, keys.where("gold_labels"),
         ": give gold_labels or gold_labels_field, not both");
  }
  if (!task.groups.empty() && task.subtask.empty()) {
    fail(ErrorKind::kConfig, keys.where("groups"), ": there are no subtasks to group");
  }
  static constexpr std::array<std::string_view, 3> kMetrics = {"acc", "acc_norm", "acc_bytes"};
  for (const auto& metric : task.metrics) {
    if (std::find(kMetrics.begin(), kMetrics.end(), metric) == kMetrics.end()) {
      fail(ErrorKind::kConfig, keys.where("metrics"), ": \"", printable(metric),
           "\": want acc, acc_norm or acc_bytes");
    }
  }
}

}  // namespace

TaskSpec parse_task(std::string_view toml, std::string_view name, std::string_view origin) {
  Keys keys(toml, origin);
  TaskSpec task;
  task.name = name;
  task.origin = origin;
  task.files = keys.required_texts("files");
  check_names(keys, "files", task.files);
  task.fewshot_files = keys.texts("fewshot_files");
  check_names(keys, "fewshot_files", task.fewshot_files);
  const std::string sampler = keys.text("fewshot_sampler", "random");
  if (sampler != "random" && sampler != "first") {
    fail(ErrorKind::kConfig, keys.where("fewshot_sampler"), ": \"", printable(sampler),
         "\": want random or first");
  }
  task.fewshot_first = sampler == "first";
  const auto one = [&](const std::string& key) {
    return TextTemplate(keys.text(key, ""), keys.where(key));
  };
  task.description = one("description");
  task.context = one("context");
  task.contexts = templates(keys, "contexts");
  task.context_clean = steps(keys, "context_clean");
  task.choices = templates(keys, "choices");
  task.choices_field = keys.text("choices_field", "");
  task.choice_clean = steps(keys, "choice_clean");
  task.gold = keys.required_texts("gold");
  task.gold_labels = keys.texts("gold_labels");
  task.gold_labels_field = keys.text("gold_labels_field", "");
  task.target_delimiter = keys.text("target_delimiter", task.target_delimiter);
  task.fewshot_delimiter = keys.text("fewshot_delimiter", task.fewshot_delimiter);
  task.metrics = keys.required_texts("metrics");
  task.subtask = keys.text("subtask", "");
  for (const auto& group : keys.names_in("groups")) {
    task.groups[group] = keys.required_texts("groups." + group);
  }
  keys.refuse_others();
  check(keys, task, keys.has("context"));
  return task;
}

}  // namespace lockstep
