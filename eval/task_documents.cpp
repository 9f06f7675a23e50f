#include "eval/task_documents.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/python_random.h"
#include "base/text.h"
#include "io/compressed.h"

namespace lockstep {
namespace {

// Rows of one subtask, rendered, and their descriptions.
struct Part {
  std::string value;
  std::vector<TaskDocument> documents;
  std::vector<std::string> descriptions;
};

std::string find_data(FileSystem& fs, const TaskSpec& task, const std::string& directory,
                      const std::vector<std::string>& names) {
  for (const auto& name : names) {
    for (const char* ending : {".jsonl", ".jsonl.gz", ".jsonl.zst"}) {
      std::string path = concat(directory, "/", name, ending);
      if (fs.exists(path)) return path;
    }
  }
  std::string tried;
  for (const auto& name : names) tried += (tried.empty() ? "" : " or ") + name + ".jsonl";
  fail(ErrorKind::kInput, printable(directory), ": no data for task ", task.name, ": want ",
       tried.empty() ? "fewshot_files in its description" : tried, " (or .gz, .zst)");
}

std::vector<std::string> choices_of(const TaskSpec& task, const DataRow& row) {
  std::vector<std::string> choices;
  if (task.choices_field.empty()) {
    for (const auto& choice : task.choices) choices.push_back(choice.render(row));
  } else {
    const Json& list = field_of(row, task.choices_field);
    if (!list.is_array()) {
      fail(ErrorKind::kInput, row.where, ": field \"", task.choices_field, "\": ", list.type_name(),
           ", want an array of texts");
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      choices.push_back(field_text(row, concat(task.choices_field, ".", i)));
    }
  }
  for (auto& choice : choices) choice = apply_steps(task.choice_clean, std::move(choice));
  return choices;
}

const std::string& gold_field(const TaskSpec& task, const DataRow& row) {
  for (const auto& field : task.gold) {
    if (find_field(row.json, field) != nullptr) return field;
  }
  fail(ErrorKind::kInput, row.where, ": no field \"", task.gold.front(), "\"");
}

[[noreturn]] void bad_gold(const DataRow& row, const std::string& field, std::string_view wanted) {
  fail(ErrorKind::kInput, row.where, ": field \"", field,
       "\": ", printable(field_of(row, field).dump(), 40), ", want ", wanted);
}

std::size_t gold_of(const TaskSpec& task, const DataRow& row, std::size_t choices) {
  const std::string& field = gold_field(task, row);
  const Json& value = field_of(row, field);
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  const std::string text = TextStep("lstrip", "").apply(field_text(row, field));
  std::vector<std::string> labels = task.gold_labels;
  if (!task.gold_labels_field.empty()) {
    const Json& list = field_of(row, task.gold_labels_field);
    for (std::size_t i = 0; i < list.size(); ++i) {
      labels.push_back(field_text(row, concat(task.gold_labels_field, ".", i)));
    }
  }
  std::size_t gold = 0;
  if (!labels.empty()) {
    const auto found = std::find(labels.begin(), labels.end(), text);
    if (found == labels.end()) bad_gold(row, field, "one of the labels");
    gold = static_cast<std::size_t>(found - labels.begin());
  } else {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, gold);
    if (error != std::errc() || stop != end || text.empty()) {
      bad_gold(row, field, "the index of the right choice");
    }
  }
  if (gold >= choices) bad_gold(row, field, concat("one of the ", choices, " choices"));
  return gold;
}

bool is_rendered(const Json& row) {
  return row.contains("query") && row.contains("choices") && row.contains("gold");
}

TaskDocument rendered_row(const DataRow& row) {
  TaskSpec as_it_is;
  as_it_is.choices_field = "choices";
  as_it_is.gold = {"gold"};
  TaskDocument document;
  document.contexts = {field_text(row, "query")};
  document.choices = choices_of(as_it_is, row);
  document.gold = gold_of(as_it_is, row, document.choices.size());
  return document;
}

void check_text(const DataRow& row, const TaskDocument& document) {
  if (document.choices.size() < 2) {
    fail(ErrorKind::kInput, row.where, ": ", document.choices.size(), " choices, want two or more");
  }
}

// The subtasks of a file in the order in which they come, at most `limit` rows of each.
std::vector<Part> read_parts(FileSystem& fs, const TaskSpec& task, const std::string& path,
                             std::size_t limit, const std::set<std::string>& only) {
  std::vector<Part> parts;
  std::map<std::string, std::size_t> index;
  LineReader reader(open_byte_source(fs, path));
  std::string line;
  while (reader.next(line)) {
    if (line.empty() || line == "\r") continue;
    DataRow row{{}, concat(printable(path), ":", reader.line_number())};
    row.json = parse_json(line, row.where);
    if (!row.json.is_object()) {
      fail(ErrorKind::kInput, row.where, ": ", row.json.type_name(), ", want an object");
    }
    const std::string value = task.subtask.empty() ? "" : field_text(row, task.subtask);
    if (!only.empty() && only.count(value) == 0) continue;
    const auto [at, added] = index.emplace(value, parts.size());
    if (added) parts.push_back({.value = value, .documents = {}, .descriptions = {}});
    Part& part = parts[at->second];
    if (limit > 0 && part.documents.size() >= limit) continue;
    TaskDocument document = render_row(task, row);
    document.doc = part.documents.size();
    part.documents.push_back(std::move(document));
    part.descriptions.push_back(task.description.render(row));
  }
  if (parts.empty()) {
    fail(ErrorKind::kInput, printable(path), ": no questions for task ", task.name);
  }
  return parts;
}

// Draws the examples of one question after another of a subtask.
class Examples {
 public:
  Examples(const TaskSpec& task, const FewshotOptions& options, const Part* pool, bool same_file,
           const std::string& name)
      : options_(options), pool_(pool), same_file_(same_file), random_(options.seed) {
    first_ = options.sampler == FewshotSampler::kFirst ||
             (options.sampler == FewshotSampler::kOfTask && task.fewshot_first);
    const std::size_t size = pool == nullptr ? 0 : pool->documents.size();
    wanted_ = options.count + (same_file ? 1 : 0);
    for (const std::uint32_t id : options.ids) {
      if (id >= size) {
        fail(ErrorKind::kInput, name, ": example ", id, " was asked for, there are ", size);
      }
    }
    if (options.ids.empty() && wanted_ > size) {
      fail(ErrorKind::kInput, name, ": ", options.count, " examples for each question, but only ",
           size, " are there", same_file ? " with the question itself" : "");
    }
  }

  std::string text_for(std::size_t doc, const TaskSpec& task) {
    std::string text;
    std::size_t taken = 0;
    const std::size_t most = options_.ids.empty() ? options_.count : options_.ids.size();
    for (const std::uint32_t id : draw()) {
      if (taken == most || (same_file_ && id == doc)) continue;
      const TaskDocument& example = pool_->documents[id];
      text += example.contexts[example.contexts.size() == 1 ? 0 : example.gold];
      text += task.target_delimiter + example.choices[example.gold] + task.fewshot_delimiter;
      ++taken;
    }
    return text;
  }

 private:
  std::vector<std::uint32_t> draw() {
    if (!options_.ids.empty()) return options_.ids;
    if (!first_) {
      return random_.sample(static_cast<std::uint32_t>(pool_->documents.size()), wanted_);
    }
    std::vector<std::uint32_t> ids;
    for (std::uint32_t i = 0; i < wanted_; ++i) ids.push_back(i);
    return ids;
  }

  const FewshotOptions& options_;
  const Part* pool_;
  bool same_file_;
  PythonRandom random_;
  bool first_ = false;
  std::uint32_t wanted_ = 0;
};

}  // namespace

TaskDocument render_row(const TaskSpec& task, const DataRow& row) {
  TaskDocument document;
  if (is_rendered(row.json)) {
    document = rendered_row(row);
  } else {
    document.choices = choices_of(task, row);
    if (task.contexts.empty()) {
      document.contexts = {apply_steps(task.context_clean, task.context.render(row))};
    } else {
      for (const auto& context : task.contexts) {
        document.contexts.push_back(apply_steps(task.context_clean, context.render(row)));
      }
      document.choices.resize(document.contexts.size(), document.choices.front());
    }
    document.gold = gold_of(task, row, document.choices.size());
  }
  check_text(row, document);
  return document;
}

TaskQuestions read_task(FileSystem& fs, const TaskSpec& task, const std::string& directory,
                        const TaskReadOptions& options) {
  TaskQuestions out;
  out.file = find_data(fs, task, directory, task.files);
  std::vector<Part> parts = read_parts(fs, task, out.file, options.limit, options.only);
  std::vector<Part> pools;
  if (options.fewshot.any()) {
    out.fewshot_file = find_data(fs, task, directory, task.fewshot_files);
    pools = read_parts(fs, task, out.fewshot_file, 0, options.only);
  }
  for (Part& part : parts) {
    Subtask subtask;
    subtask.name = part.value.empty() ? task.name : task.name + "_" + part.value;
    subtask.value = part.value;
    std::optional<Examples> examples;
    if (options.fewshot.any()) {
      const auto pool = std::find_if(pools.begin(), pools.end(),
                                     [&](const Part& each) { return each.value == part.value; });
      examples.emplace(task, options.fewshot, pool == pools.end() ? nullptr : &*pool,
                       out.fewshot_file == out.file, subtask.name);
    }
    for (TaskDocument& document : part.documents) {
      std::string before = part.descriptions[document.doc];
      if (examples) before += examples->text_for(document.doc, task);
      for (auto& context : document.contexts) context = before + context;
    }
    subtask.documents = std::move(part.documents);
    out.subtasks.push_back(std::move(subtask));
  }
  return out;
}

}  // namespace lockstep
