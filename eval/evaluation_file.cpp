#include "eval/evaluation_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr const char* kFormat = "lockstep-evaluation";
constexpr std::int64_t kVersion = 1;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

OrderedJson number(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

// An array with one record a line: files can be compared and read by people.
template <class Record, class ToJson>
std::string lines_of(const std::vector<Record>& records, const std::string& indent,
                     const ToJson& to_json) {
  if (records.empty()) return "[]";
  std::string text = "[";
  for (const Record& record : records) {
    text += concat(&record == records.data() ? "\n" : ",\n", indent, "  ", to_json(record));
  }
  return text + "\n" + indent + "]";
}

// The object without its closing brace, for members to be added.
std::string open_object(const OrderedJson& json) {
  std::string text = json.dump();
  text.pop_back();
  return text;
}

std::string heldout_text(const HeldoutSurface& heldout) {
  const auto domain_text = [](const HeldoutSurface::Domain& domain) {
    return OrderedJson{{"label", domain.label},
                       {"documents", domain.documents},
                       {"tokens", domain.tokens},
                       {"targets", domain.targets},
                       {"bytes", domain.bytes},
                       {"loss", number(domain.loss)},
                       {"perplexity", number(domain.perplexity)},
                       {"bits_per_byte", number(domain.bits_per_byte)},
                       {"loss_olmo_core", number(domain.loss_olmo_core)},
                       {"perplexity_olmo_core", number(domain.perplexity_olmo_core)}}
        .dump();
  };
  const auto document_text = [](const HeldoutSurface::Document& document) {
    return OrderedJson{{"label", document.label},
                       {"document", document.document},
                       {"targets", document.targets},
                       {"bytes", document.bytes},
                       {"ce", number(document.ce)}}
        .dump();
  };
  return concat(open_object({{"data_fingerprint", heldout.data_fingerprint},
                             {"sequence_length", heldout.sequence_length}}),
                ",\n  \"domains\": ", lines_of(heldout.domains, "  ", domain_text),
                ",\n  \"by_document\": ", lines_of(heldout.by_document, "  ", document_text), "}");
}

std::string task_text(const TaskSurface& task) {
  OrderedJson json = {{"name", task.name}, {"n", task.n}};
  if (task.fewshot > 0) json["fewshot"] = task.fewshot;
  json["acc"] = number(task.acc);
  json["acc_stderr"] = number(task.acc_stderr);
  json["acc_norm"] = number(task.acc_norm);
  json["acc_bytes"] = number(task.acc_bytes);
  const auto answer_text = [](const TaskSurface::Answer& answer) {
    return OrderedJson{{"doc", answer.doc},
                       {"subtask", answer.subtask},
                       {"acc", answer.acc ? 1 : 0},
                       {"acc_norm", answer.acc_norm ? 1 : 0},
                       {"acc_bytes", answer.acc_bytes ? 1 : 0}}
        .dump();
  };
  return concat(open_object(json),
                ",\n    \"documents\": ", lines_of(task.documents, "    ", answer_text), "}");
}

std::string kl_text(const KlSurface& kl) {
  const OrderedJson json = {{"reference", kl.reference},
                            {"vocab", kl.vocab},
                            {"tokens", kl.tokens},
                            {"mean", number(kl.mean)},
                            {"max", number(kl.max)},
                            {"percentiles",
                             {{"50", number(kl.p50)},
                              {"90", number(kl.p90)},
                              {"99", number(kl.p99)},
                              {"99.9", number(kl.p99_9)}}},
                            {"top1", number(kl.top1)},
                            {"top5", number(kl.top5)}};
  const auto bucket_text = [](const KlSurface::Bucket& bucket) {
    return OrderedJson{{"first", bucket.first},
                       {"last", bucket.last},
                       {"tokens", bucket.tokens},
                       {"mean", number(bucket.mean)}}
        .dump();
  };
  const auto document_text = [](const KlSurface::Document& document) {
    return OrderedJson{
        {"document", document.document}, {"tokens", document.tokens}, {"kl", number(document.kl)}}
        .dump();
  };
  return concat(open_object(json), ",\n  \"buckets\": ", lines_of(kl.buckets, "  ", bucket_text),
                ",\n  \"by_document\": ", lines_of(kl.by_document, "  ", document_text), "}");
}

// An object of the file, read key by key; every key that is there must be taken.
class Record {
 public:
  Record(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) {
      fail(ErrorKind::kData, where_, ": ", json.type_name(), ", want an object");
    }
  }

  [[nodiscard]] bool has(const char* key) {
    known_.insert(key);
    return json_.contains(key);
  }
  [[nodiscard]] const Json& at(const char* key) {
    if (!has(key)) fail(ErrorKind::kData, where_, ": no key \"", key, "\"");
    return json_[key];
  }
  [[nodiscard]] Record object(const char* key) { return {at(key), path(key)}; }

  void read(const char* key, std::string& out) {
    const Json& value = at(key);
    if (!value.is_string()) wrong(value, "text", key);
    out = value.get<std::string>();
  }
  void read(const char* key, std::int64_t& out) {
    const Json& value = at(key);
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost) {
      wrong(value, "an integer from 0 on", key);
    }
    out = value.get<std::int64_t>();
  }
  void read(const char* key, double& out) {
    const Json& value = at(key);
    if (!value.is_number() && !value.is_null()) wrong(value, "a number or null", key);
    out = value.is_null() ? std::nan("") : value.get<double>();
  }
  void read(const char* key, bool& out) {
    const Json& value = at(key);
    if (value != 0 && value != 1) wrong(value, "0 or 1", key);
    out = value == 1;
  }
  template <class Item, class ReadItem>
  void read_array(const char* key, std::vector<Item>& out, const ReadItem& read_item) {
    const Json& value = at(key);
    if (!value.is_array()) wrong(value, "an array", key);
    out.resize(value.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      Record record(value[i], concat(path(key), "[", i, "]"));
      read_item(record, out[i]);
      record.finish();
    }
  }

  // Refuses what has not been asked for.
  void finish() const {
    for (const auto& [key, value] : json_.items()) {
      if (!known_.contains(key)) {
        fail(ErrorKind::kData, where_, ": unknown key \"", printable(key, 40), "\"");
      }
    }
  }
  [[noreturn]] void wrong(const Json& value, const std::string& wanted, const char* key) const {
    fail(ErrorKind::kData, path(key), ": ",
         value.is_structured() ? value.type_name() : printable(value.dump(), 40), ", want ",
         wanted);
  }

 private:
  [[nodiscard]] std::string path(const char* key) const { return concat(where_, ": ", key); }

  const Json& json_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
};

void read_model(Record model, EvaluatedModel& out) {
  model.read("name", out.name);
  model.read("step", out.step);
  model.read("precision", out.precision);
  if (out.precision != "fp32" && out.precision != "bf16") {
    model.wrong(out.precision, "\"fp32\" or \"bf16\"", "precision");
  }
  model.read("producer", out.producer);
  model.finish();
}

HeldoutSurface read_heldout(Record record) {
  HeldoutSurface out;
  record.read("data_fingerprint", out.data_fingerprint);
  record.read("sequence_length", out.sequence_length);
  record.read_array("domains", out.domains, [](Record& item, HeldoutSurface::Domain& domain) {
    item.read("label", domain.label);
    item.read("documents", domain.documents);
    item.read("tokens", domain.tokens);
    item.read("targets", domain.targets);
    item.read("bytes", domain.bytes);
    item.read("loss", domain.loss);
    item.read("perplexity", domain.perplexity);
    item.read("bits_per_byte", domain.bits_per_byte);
    item.read("loss_olmo_core", domain.loss_olmo_core);
    item.read("perplexity_olmo_core", domain.perplexity_olmo_core);
  });
  record.read_array("by_document", out.by_document,
                    [](Record& item, HeldoutSurface::Document& document) {
                      item.read("label", document.label);
                      item.read("document", document.document);
                      item.read("targets", document.targets);
                      item.read("bytes", document.bytes);
                      item.read("ce", document.ce);
                    });
  record.finish();
  return out;
}

void read_task(Record& record, TaskSurface& task) {
  record.read("name", task.name);
  if (record.has("fewshot")) record.read("fewshot", task.fewshot);
  record.read("n", task.n);
  record.read("acc", task.acc);
  record.read("acc_stderr", task.acc_stderr);
  record.read("acc_norm", task.acc_norm);
  record.read("acc_bytes", task.acc_bytes);
  record.read_array("documents", task.documents, [](Record& item, TaskSurface::Answer& answer) {
    item.read("doc", answer.doc);
    item.read("subtask", answer.subtask);
    item.read("acc", answer.acc);
    item.read("acc_norm", answer.acc_norm);
    item.read("acc_bytes", answer.acc_bytes);
  });
}

KlSurface read_kl(Record record) {
  KlSurface kl;
  record.read("reference", kl.reference);
  record.read("vocab", kl.vocab);
  record.read("tokens", kl.tokens);
  record.read("mean", kl.mean);
  record.read("max", kl.max);
  Record percentiles = record.object("percentiles");
  percentiles.read("50", kl.p50);
  percentiles.read("90", kl.p90);
  percentiles.read("99", kl.p99);
  percentiles.read("99.9", kl.p99_9);
  percentiles.finish();
  record.read("top1", kl.top1);
  record.read("top5", kl.top5);
  record.read_array("buckets", kl.buckets, [](Record& item, KlSurface::Bucket& bucket) {
    item.read("first", bucket.first);
    item.read("last", bucket.last);
    item.read("tokens", bucket.tokens);
    item.read("mean", bucket.mean);
  });
  record.read_array("by_document", kl.by_document, [](Record& item, KlSurface::Document& document) {
    item.read("document", document.document);
    item.read("tokens", document.tokens);
    item.read("kl", document.kl);
  });
  record.finish();
  return kl;
}

// What stands before the surfaces; refuses files that are something else.
void check_format(Record& record) {
  if (const Json& format = record.at("format"); format != kFormat) {
    record.wrong(format, concat("\"", kFormat, "\""), "format");
  }
  if (const Json& version = record.at("version"); version != kVersion) {
    record.wrong(version, concat(kVersion, ", which this program reads"), "version");
  }
}

}  // namespace

std::string to_json_text(const Evaluation& evaluation) {
  const EvaluatedModel& model = evaluation.model;
  const OrderedJson head = {{"format", kFormat},
                            {"version", kVersion},
                            {"model",
                             {{"name", model.name},
                              {"step", model.step},
                              {"precision", model.precision},
                              {"producer", model.producer}}}};
  std::string text = open_object(head);
  if (evaluation.heldout) text += ",\n\"heldout\": " + heldout_text(*evaluation.heldout);
  if (evaluation.tasks) {
    text += ",\n\"tasks\": " + lines_of(*evaluation.tasks, "", task_text);
  }
  if (evaluation.kl) text += ",\n\"kl\": " + kl_text(*evaluation.kl);
  return text + "}\n";
}

Evaluation parse_evaluation(std::string_view text, const std::string& where) {
  Json json;
  try {
    json = parse_json(text, where);
  } catch (const Error& error) {
    throw Error(ErrorKind::kData, error.what());
  }
  Record record(json, where);
  check_format(record);
  Evaluation evaluation;
  read_model(record.object("model"), evaluation.model);
  if (record.has("heldout")) evaluation.heldout = read_heldout(record.object("heldout"));
  if (record.has("tasks")) record.read_array("tasks", evaluation.tasks.emplace(), read_task);
  if (record.has("kl")) evaluation.kl = read_kl(record.object("kl"));
  record.finish();
  return evaluation;
}

Evaluation read_evaluation(FileSystem& fs, const std::string& path) {
  return parse_evaluation(read_file(fs, path, kMaxBytes), printable(path));
}

Evaluation merge(const Evaluation& existing, Evaluation added, const std::string& where) {
  const EvaluatedModel& old = existing.model;
  const EvaluatedModel& model = added.model;
  if (old.name != model.name || old.step != model.step || old.precision != model.precision) {
    fail(ErrorKind::kConfig, where, ": holds ", printable(old.name), " at step ", old.step, " in ",
         old.precision, ", not ", printable(model.name), " at step ", model.step, " in ",
         model.precision, "; name another file with -o");
  }
  if (!added.heldout) added.heldout = existing.heldout;
  if (!added.kl) added.kl = existing.kl;
  if (!existing.tasks) return added;
  std::vector<TaskSurface> tasks = *existing.tasks;
  for (TaskSurface& task : added.tasks.value_or(std::vector<TaskSurface>())) {
    const auto same = std::find_if(tasks.begin(), tasks.end(), [&](const TaskSurface& other) {
      return other.name == task.name;
    });
    if (same == tasks.end()) {
      tasks.push_back(std::move(task));
    } else {
      *same = std::move(task);
    }
  }
  added.tasks = std::move(tasks);
  return added;
}

}  // namespace lockstep
