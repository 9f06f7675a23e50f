#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "cli/eval_options.h"
#include "eval/request_file.h"

namespace lockstep::cli {
namespace {

OrderedJson report_json(const RequestReport& report) {
  OrderedJson json;
  json["n"] = report.documents;
  const auto put = [&](const std::string& name, std::int64_t right, std::int64_t n) {
    const Share share = share_of(right, n);
    json[name] = number_or_null(share.value);
    json[name + "_stderr"] = number_or_null(share.error);
  };
  put("acc", report.acc, report.with_choices);
  put("acc_per_char", report.acc_per_char, report.with_choices);
  put("acc_per_byte", report.acc_per_byte, report.with_choices);
  put("acc_uncond", report.acc_uncond, report.with_twin);
  json["bits_per_byte"] = report.bits_per_byte;
  json["bits_per_byte_stderr"] = number_or_null(report.bits_per_byte_error);
  return json;
}

std::string report_line(const std::string& name, const OrderedJson& json) {
  std::array<char, 160> text{};
  const auto value = [&](const char* key) {
    return json[key].is_null() ? std::nan("") : json[key].get<double>();
  };
  std::snprintf(text.data(), text.size(), "%-44s %9lld %8.4f %8.4f %8.4f %10.4f %9.4f",
                printable(name, 44).c_str(), json["n"].get<long long>(), value("acc"),
                value("acc_per_char"), value("acc_per_byte"), value("acc_uncond"),
                value("bits_per_byte"));
  return text.data();
}

std::string name_of(const std::string& path) {
  const std::string file = path.substr(path.find_last_of('/') + 1);
  return file.substr(0, file.find(".requests"));
}

}  // namespace

int run_requests(Context& context, const EvalOptions& options) {
  FileSystem& fs = FileSystem::real();
  const auto text = open_text_model(fs, options);
  OrderedJson document;
  document["model"] = options.model;
  document["precision"] = precision_name(options);
  document["max_length"] = text->max_length;
  document["requests"] = OrderedJson::object();
  context.say(
      "requests                                     documents      acc per char per byte"
      "    uncond bits/byte");
  for (const std::string& path : options.requests) {
    const std::string name = name_of(path);
    if (document["requests"].contains(name)) {
      fail(ErrorKind::kConfig, "--requests: ", printable(name), " is there twice");
    }
    context.progress("reading and encoding " + name);
    auto documents = read_requests(fs, path);
    const std::size_t limit = options.limit.value_or(0);
    if (limit > 0 && documents.size() > limit) documents.resize(limit);
    ProgressBar bar(context);
    ScoreOptions score = score_options(options);
    score.progress = [&](double share) { bar.show(share, name); };
    OrderedJson json =
        report_json(evaluate_requests(*text->model, documents, text->tokenizer, text->prefix,
                                      text->max_length, name, text->stream.pool(), score));
    context.end_progress();
    context.say(report_line(name, json));
    json["file"] = path;
    document["requests"][name] = std::move(json);
  }
  context.result(document);
  return 0;
}

}  // namespace lockstep::cli
