#include <algorithm>
#include <array>
#include <cstdio>

#include "base/text.h"
#include "cli/eval_options.h"
#include "eval/task_choice.h"
#include "eval/task_eval.h"
#include "io/compressed.h"

namespace lockstep::cli {
namespace {

struct Chosen {
  TaskChoice choice;
  std::string file = {};
  std::string fewshot_file = {};
  EncodedTask encoded = {};
  std::vector<AnsweredSubtask> answers = {};
};

std::vector<Chosen> read_tasks(Context& context, FileSystem& fs, const EvalOptions& options,
                               std::vector<TaskChoice> choices, TextModel& text) {
  std::vector<Chosen> all;
  for (TaskChoice& choice : choices) {
    context.progress("reading and encoding " + choice.name);
    auto questions = read_task(fs, choice.task, options.data,
                               {.fewshot = fewshot_options(options),
                                .limit = options.limit.value_or(0),
                                .only = choice.only});
    Chosen chosen{.choice = std::move(choice)};
    chosen.file = questions.file;
    chosen.fewshot_file = questions.fewshot_file;
    chosen.encoded = encode_task(chosen.choice.task, std::move(questions), text.tokenizer,
                                 text.prefix, text.max_length, text.stream.pool());
    all.push_back(std::move(chosen));
  }
  return all;
}

void answer(Context& context, std::vector<Chosen>& all, const EvalOptions& options,
            TextModel& text) {
  double work = 0;
  for (const Chosen& chosen : all) work += static_cast<double>(chosen.encoded.tokens());
  ProgressBar bar(context);
  double done = 0;
  for (Chosen& chosen : all) {
    const auto share = static_cast<double>(chosen.encoded.tokens()) / work;
    ScoreOptions score = score_options(options);
    score.progress = [&](double part) {
      bar.show(std::min(1.0, done + share * part), chosen.choice.name);
    };
    chosen.answers = answer_task(*text.model, std::move(chosen.encoded), score);
    done += share;
  }
  context.end_progress();
}

OrderedJson sample_json(const AnsweredSubtask& subtask, const AnsweredDocument& answer) {
  const TaskDocument& document = answer.document;
  OrderedJson json;
  json["task"] = subtask.name;
  json["doc"] = document.doc;
  if (document.contexts.size() == 1) {
    json["context"] = document.contexts.front();
  } else {
    json["contexts"] = document.contexts;
  }
  json["continuations"] = answer.continuations;
  json["choices"] = document.choices;
  json["cont_ids"] = answer.continuation_ids;
  json["ctx_tokens"] = answer.context_tokens;
  json["logprob"] = OrderedJson::array();
  json["greedy"] = OrderedJson::array();
  for (const Score& score : answer.scores) {
    json["logprob"].push_back(score.logprob);
    json["greedy"].push_back(score.greedy);
  }
  json["gold"] = document.gold;
  json["pred_acc"] = answer.picks.acc;
  json["pred_acc_norm"] = answer.picks.acc_norm;
  json["pred_acc_bytes"] = answer.picks.acc_bytes;
  return json;
}

void log_samples(FileSystem& fs, const std::string& path, const std::vector<Chosen>& all) {
  CompressedWriter writer(fs, path, compression_of_name(path));
  for (const Chosen& chosen : all) {
    for (const auto& subtask : chosen.answers) {
      for (const auto& answer : subtask.documents) {
        writer.append(sample_json(subtask, answer).dump() + "\n");
      }
    }
  }
  writer.commit();
}

struct Rule {
  const char* name;
  std::int64_t ChoiceCounts::*right;
};
constexpr std::array<Rule, 3> kRules = {{{"acc", &ChoiceCounts::acc},
                                         {"acc_norm", &ChoiceCounts::acc_norm},
                                         {"acc_bytes", &ChoiceCounts::acc_bytes}}};

OrderedJson shares_json(const std::vector<ChoiceCounts>& parts) {
  OrderedJson json;
  for (const Rule& rule : kRules) {
    const Share share = pooled(parts, rule.right);
    json[rule.name] = number_or_null(share.value);
    json[concat(rule.name, "_stderr")] = number_or_null(share.error);
  }
  std::int64_t n = 0;
  for (const auto& part : parts) n += part.n;
  json["n"] = n;
  return json;
}

std::vector<ChoiceCounts> counts_of(const Chosen& chosen, const std::vector<std::string>* values) {
  std::vector<ChoiceCounts> parts;
  for (const auto& subtask : chosen.answers) {
    if (values == nullptr ||
        std::find(values->begin(), values->end(), subtask.value) != values->end()) {
      parts.push_back(subtask.counts());
    }
  }
  return parts;
}

OrderedJson task_json(const Chosen& chosen) {
  OrderedJson json = shares_json(counts_of(chosen, nullptr));
  json["metrics"] = chosen.choice.task.metrics;
  json["file"] = chosen.file;
  json["fewshot_file"] =
      chosen.fewshot_file.empty() ? OrderedJson(nullptr) : OrderedJson(chosen.fewshot_file);
  if (chosen.choice.task.subtask.empty()) return json;
  json["groups"] = OrderedJson::object();
  for (const auto& [group, values] : chosen.choice.task.groups) {
    const auto parts = counts_of(chosen, &values);
    if (!parts.empty()) json["groups"][group] = shares_json(parts);
  }
  json["subtasks"] = OrderedJson::object();
  for (const auto& subtask : chosen.answers) {
    json["subtasks"][subtask.name] = shares_json({subtask.counts()});
  }
  return json;
}

// The rules that a task is not reported by stand in brackets.
std::string task_line(const std::string& name, const OrderedJson& json,
                      const std::vector<std::string>& metrics) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "%-28s %7lld", printable(name, 28).c_str(),
                json["n"].get<long long>());
  std::string line = text.data();
  for (const Rule& rule : kRules) {
    const bool usual = std::find(metrics.begin(), metrics.end(), rule.name) != metrics.end();
    const auto value = [&](const std::string& key) {
      return json[key].is_null() ? std::nan("") : json[key].get<double>();
    };
    std::snprintf(text.data(), text.size(), usual ? "  %7.4f +- %6.4f " : " (%7.4f +- %6.4f)",
                  value(rule.name), value(concat(rule.name, "_stderr")));
    line += text.data();
  }
  return line;
}

}  // namespace

int run_tasks(Context& context, const EvalOptions& options) {
  if (options.data.empty()) {
    fail(ErrorKind::kConfig, "--tasks: name the directory of the data sets with --data");
  }
  FileSystem& fs = FileSystem::real();
  auto choices = choose_tasks(fs, options.tasks, options.tasks_directory, "--tasks");
  const auto text = open_text_model(fs, options);
  std::vector<Chosen> all = read_tasks(context, fs, options, std::move(choices), *text);
  answer(context, all, options, *text);
  if (!options.log_samples.empty()) log_samples(fs, options.log_samples, all);
  OrderedJson document;
  document["model"] = options.model;
  document["precision"] = precision_name(options);
  document["fewshot"] = options.fewshot_ids.empty() ? OrderedJson(options.fewshot.value_or(0))
                                                    : OrderedJson(options.fewshot_ids);
  const std::size_t limit = options.limit.value_or(0);
  document["limit"] = limit == 0 ? OrderedJson(nullptr) : OrderedJson(limit);
  document["max_length"] = text->max_length;
  context.say(
      "task                         questions         acc           acc_norm"
      "           acc_bytes");
  for (const Chosen& chosen : all) {
    OrderedJson json = task_json(chosen);
    context.say(task_line(chosen.choice.name, json, chosen.choice.task.metrics));
    if (json.contains("groups") && chosen.choice.only.empty()) {
      for (const auto& [group, values] : json["groups"].items()) {
        context.say(task_line("  " + group, values, chosen.choice.task.metrics));
      }
    }
    document["tasks"][chosen.choice.name] = std::move(json);
  }
  context.result(document);
  return 0;
}

}  // namespace lockstep::cli
