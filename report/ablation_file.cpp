#include "report/ablation_file.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr const char* kFormat = "lockstep-ablation";
constexpr int kVersion = 1;
constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;

OrderedJson number(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}
double number_of(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

OrderedJson estimate_json(const Estimate& estimate) {
  if (estimate.n == 0) return nullptr;
  return {{"value", number(estimate.value)},
          {"interval", {number(estimate.interval.low), number(estimate.interval.high)}},
          {"n", estimate.n}};
}
Estimate estimate_of(const Json& json) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (json.is_null()) return {.value = nan, .interval = {nan, nan}, .n = 0};
  return {.value = number_of(json.at("value")),
          .interval = {number_of(json.at("interval").at(0)), number_of(json.at("interval").at(1))},
          .n = json.at("n")};
}

OrderedJson row_json(const AblationRow& row) {
  OrderedJson json;
  json["label"] = row.label;
  json["directory"] = row.directory;
  json["parameters"] = row.size.parameters;
  json["non_embedding_parameters"] = row.size.non_embedding_parameters;
  json["step_flops"] = number(row.size.step_flops);
  json["step_flops_maxtext"] = number(row.size.step_flops_maxtext);
  json["step_flops_olmo_core"] = number(row.size.step_flops_olmo_core);
  json["step_seconds"] = number(row.step_seconds);
  json["tokens_per_s"] = number(row.tokens_per_s);
  json["train_loss"] = number(row.train_loss);
  json["heldout_loss"] = number(row.heldout_loss);
  json["speed_ratio"] = estimate_json(row.speed_ratio);
  json["heldout_difference"] = estimate_json(row.heldout_delta);
  return json;
}

AblationRow row_of(const Json& json) {
  AblationRow row;
  row.label = json.at("label");
  row.directory = json.at("directory");
  row.size = {.parameters = json.at("parameters"),
              .non_embedding_parameters = json.at("non_embedding_parameters"),
              .step_flops = number_of(json.at("step_flops")),
              .step_flops_maxtext = number_of(json.at("step_flops_maxtext")),
              .step_flops_olmo_core = number_of(json.at("step_flops_olmo_core"))};
  row.step_seconds = number_of(json.at("step_seconds"));
  row.tokens_per_s = number_of(json.at("tokens_per_s"));
  row.train_loss = number_of(json.at("train_loss"));
  row.heldout_loss = number_of(json.at("heldout_loss"));
  row.speed_ratio = estimate_of(json.at("speed_ratio"));
  row.heldout_delta = estimate_of(json.at("heldout_difference"));
  return row;
}

}  // namespace

std::string to_json_text(const AblationFile& file) {
  OrderedJson json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["recipe"] = file.recipe;
  json["finished"] = file.finished;
  json["machine"] = file.machine;
  json["steps"] = file.ablation.steps;
  json["tokens"] = file.ablation.tokens;
  json["block"] = file.ablation.block;
  json["variants"] = OrderedJson::array();
  for (const auto& row : file.ablation.rows) json["variants"].push_back(row_json(row));
  return json.dump(1) + "\n";
}

AblationFile read_ablation(FileSystem& fs, const std::string& path) {
  const Json json = parse_json(read_file(fs, path, kMaxBytes), path);
  try {
    if (json.at("format") != kFormat || json.at("version") != kVersion) {
      fail(ErrorKind::kData, printable(path), ": not an ablation of version ", kVersion,
           "; made by a newer lockstep?");
    }
    AblationFile file;
    file.recipe = json.at("recipe");
    file.finished = json.at("finished");
    file.machine = json.at("machine");
    file.ablation.steps = json.at("steps");
    file.ablation.tokens = json.at("tokens");
    file.ablation.block = json.at("block");
    for (const auto& row : json.at("variants")) file.ablation.rows.push_back(row_of(row));
    return file;
  } catch (const Json::exception& error) {
    fail(ErrorKind::kData, printable(path), ": damaged: ", error.what());
  }
}

void require_same_ablation(const AblationFile& found, const AblationFile& wanted,
                           const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    fail(ErrorKind::kConfig, printable(path), " is of another ablation: ", what,
         "; name another directory with -o, or remove this one");
  };
  const Ablation& a = found.ablation;
  const Ablation& b = wanted.ablation;
  if (a.block != b.block) refuse(concat("turns of ", a.block, " steps, now ", b.block));
  if (a.steps != b.steps) refuse(concat(a.steps, " steps, now ", b.steps));
  if (a.rows.size() != b.rows.size()) {
    refuse(concat(a.rows.size(), " variants, now ", b.rows.size()));
  }
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    if (a.rows[i].label == b.rows[i].label) continue;
    refuse(concat("variant ", i + 1, " is ", printable(a.rows[i].label), ", now ",
                  printable(b.rows[i].label)));
  }
}

}  // namespace lockstep
