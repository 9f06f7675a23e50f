#include "report/evidence.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/paths.h"
#include "io/jsonl.h"
#include "train/recipe.h"

namespace lockstep {
namespace {

constexpr const char* kBundleFile = "bundle.json";
constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kLogits = "logits";
constexpr std::int64_t kBundleVersion = 1;
constexpr std::uint64_t kMaxJsonBytes = std::uint64_t{16} << 20;

// Null and absence are the same: there is no number.
double number_of(const Json& line, const char* key, const std::string& what) {
  const auto found = line.find(key);
  if (found == line.end() || found->is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!found->is_number()) fail(ErrorKind::kData, what, ": ", key, " is not a number");
  return found->get<double>();
}

CurvePoint parse_point(std::string_view text, const std::string& what) {
  Json line;
  try {
    line = parse_json(text, what);
  } catch (const Error& error) {
    throw Error(ErrorKind::kData, error.what());
  }
  const auto step = line.is_object() ? line.find("step") : line.end();
  if (step == line.end() || !step->is_number_integer() || step->get<std::int64_t>() < 0) {
    fail(ErrorKind::kData, what, ": not a metrics line: no step");
  }
  CurvePoint point{.step = step->get<std::int64_t>(),
                   .loss = number_of(line, "loss", what),
                   .ce_loss = number_of(line, "ce_loss", what),
                   .grad_norm = number_of(line, "grad_norm", what),
                   .lr = number_of(line, "lr", what),
                   .tokens_per_s = number_of(line, "tokens_per_s", what),
                   .mfu = number_of(line, "mfu", what),
                   .seconds = number_of(line, "seconds", what),
                   .batch_digest = {}};
  if (const double tokens = number_of(line, "tokens", what); tokens >= 0 && tokens < 9e18) {
    point.tokens = static_cast<std::int64_t>(tokens);
  }
  if (const auto found = line.find("skipped"); found != line.end()) {
    if (!found->is_boolean()) fail(ErrorKind::kData, what, ": skipped is not true or false");
    point.skipped = found->get<bool>();
  }
  if (const auto found = line.find("batch_digest"); found != line.end() && found->is_string()) {
    point.batch_digest = found->get<std::string>();
  }
  return point;
}

// Files (or directories) named step-N + `suffix`, by step.
std::map<std::int64_t, std::string> files_by_step(FileSystem& fs, const std::string& directory,
                                                  std::string_view suffix,
                                                  std::vector<std::string>& notes) {
  std::map<std::int64_t, std::string> found;
  if (!fs.is_directory(directory)) return found;
  for (const std::string& name : fs.list(directory)) {
    if (!name.ends_with(suffix)) continue;
    const auto step = paths::step_of(std::string_view(name).substr(0, name.size() - suffix.size()));
    if (step) {
      found.emplace(*step, join_path(directory, name));
    } else {
      notes.push_back(concat(printable(join_path(directory, name)),
                             ": passed over, its name is not step-NNNNNNNN", suffix));
    }
  }
  return found;
}

std::map<std::int64_t, std::string> checkpoints_of(FileSystem& fs, const std::string& directory) {
  std::map<std::int64_t, std::string> found;
  const std::string all = join_path(directory, paths::kCheckpoints);
  for (const std::int64_t step : list_checkpoints(fs, all)) {
    found.emplace(step, join_path(all, paths::checkpoint_name(step)));
  }
  return found;
}

void find_curve(FileSystem& fs, Evidence& evidence) {
  const std::string path = join_path(evidence.path, paths::kMetrics);
  if (!fs.exists(path)) {
    evidence.notes.push_back(concat(printable(evidence.path), ": has no ", paths::kMetrics));
    return;
  }
  evidence.curve = read_curve(fs, path, evidence.notes);
  if (evidence.curve.empty()) {
    evidence.notes.push_back(concat(printable(path), ": holds no step"));
  }
}

void read_run(FileSystem& fs, Evidence& evidence) {
  evidence.recipe_path = join_path(evidence.path, paths::kRecipe);
  const Recipe recipe = read_recipe(evidence.recipe_path);
  evidence.name = recipe.run.name;
  evidence.precision = to_name(recipe.train.precision);
  evidence.tokens_per_step = recipe.tokens_per_step();
  evidence.vocab_size = recipe.model.vocab_size;
  evidence.checkpoints = checkpoints_of(fs, evidence.path);
  evidence.tokenizer_path = recipe.data.tokenizer_file;
  find_curve(fs, evidence);
}

void read_bundle(FileSystem& fs, Evidence& evidence) {
  const std::string path = join_path(evidence.path, kBundleFile);
  const Json json = parse_json(read_file(fs, path, kMaxJsonBytes), printable(path));
  try {
    if (!json.is_object() || json.value("format", "") != "lockstep-bundle") {
      fail(ErrorKind::kInput, printable(path), ": its format is not lockstep-bundle");
    }
    const auto version = json.at("version").get<std::int64_t>();
    if (version < 1 || version > kBundleVersion) {
      fail(ErrorKind::kInput, printable(path), ": is of version ", version,
           ", this program reads versions 1 to ", kBundleVersion);
    }
    evidence.name = json.at("name").get<std::string>();
    evidence.producer = json.at("producer").get<std::string>();
    evidence.precision = json.at("precision").get<std::string>();
    evidence.tokens_per_step = json.at("tokens_per_step").get<std::int64_t>();
  } catch (const Json::exception& error) {
    fail(ErrorKind::kData, printable(path), ": not a bundle: ", printable(error.what()));
  }
  // Its checkpoints are Hugging Face directories, without a manifest.
  for (const auto& [step, directory] :
       files_by_step(fs, join_path(evidence.path, paths::kCheckpoints), "", evidence.notes)) {
    if (fs.exists(join_path(directory, paths::kHfConfig))) {
      evidence.checkpoints.emplace(step, directory);
    } else {
      evidence.notes.push_back(
          concat(printable(directory), ": passed over, it holds no ", paths::kHfConfig));
    }
  }
  evidence.logits =
      files_by_step(fs, join_path(evidence.path, kLogits), ".safetensors", evidence.notes);
  find_curve(fs, evidence);
}

// A checkpoint's step is its directory's name; its evaluation lies with its run's.
void read_model(FileSystem& fs, Evidence& evidence) {
  const std::string path = evidence.path.substr(0, evidence.path.find_last_not_of('/') + 1);
  const std::string name = path.substr(path.rfind('/') + 1);
  evidence.name = name.empty() ? evidence.path : name;
  auto step = paths::step_of(name);
  if (step) {
    const std::string run = parent_directory(parent_directory(path));
    const std::string evaluation = join_path(join_path(run, paths::kEvals), name + ".json");
    if (fs.exists(evaluation)) evidence.evaluations.emplace(*step, evaluation);
  } else if (evidence.evaluations.size() == 1) {
    step = evidence.evaluations.begin()->first;
  }
  evidence.checkpoints.emplace(step.value_or(kUnknownStep), path);
  const std::string recipe = join_path(path, paths::kRecipe);
  if (fs.exists(recipe)) evidence.recipe_path = recipe;
}

// From the last checkpoint: what the recipe of a bundle or a bare model does not tell.
void complete_from_checkpoint(FileSystem& fs, Evidence& evidence) {
  if (evidence.checkpoints.empty()) return;
  const std::string& directory = evidence.checkpoints.rbegin()->second;
  if (!evidence.vocab_size) {
    const std::string config = join_path(directory, paths::kHfConfig);
    evidence.vocab_size =
        parse_hf_config(read_file(fs, config, kMaxJsonBytes), printable(config)).model.vocab_size;
  }
  if (evidence.tokenizer_path.empty()) {
    const std::string tokenizer = join_path(directory, kTokenizerFile);
    if (fs.exists(tokenizer)) evidence.tokenizer_path = tokenizer;
  }
}

}  // namespace

std::string_view name_of(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::kRun:
      return "run";
    case EvidenceKind::kBundle:
      return "bundle";
    case EvidenceKind::kModel:
      return "model";
  }
  return "";
}

std::vector<CurvePoint> read_curve(FileSystem& fs, const std::string& path,
                                   std::vector<std::string>& notes) {
  std::map<std::int64_t, CurvePoint> by_step;
  std::int64_t repeated = 0;
  const JsonlTail tail = read_jsonl(fs, path, [&](const JsonlLine& line) {
    CurvePoint point = parse_point(line.text, concat(printable(path), ":", line.number));
    const std::int64_t step = point.step;
    if (!by_step.insert_or_assign(step, std::move(point)).second) ++repeated;
  });
  if (tail.torn_bytes > 0) {
    notes.push_back(concat(printable(path), ": the last line is torn (", tail.torn_bytes,
                           " bytes without an end) and was passed over"));
  }
  if (repeated > 0) {
    notes.push_back(concat(printable(path), ": ", repeated,
                           " lines log a step again; the last line of a step counts"));
  }
  std::vector<CurvePoint> curve;
  curve.reserve(by_step.size());
  for (auto& [step, point] : by_step) curve.push_back(std::move(point));
  return curve;
}

Evidence load_evidence(FileSystem& fs, const std::string& path) {
  if (!fs.is_directory(path)) {
    fail(ErrorKind::kInput, printable(path),
         fs.exists(path) ? ": is not a directory" : ": does not exist",
         "; wanted a run, a reference bundle or a Hugging Face directory");
  }
  Evidence evidence;
  evidence.path = path;
  evidence.evaluations = files_by_step(fs, join_path(path, paths::kEvals), ".json", evidence.notes);
  if (fs.exists(join_path(path, kBundleFile))) {
    evidence.kind = EvidenceKind::kBundle;
    read_bundle(fs, evidence);
  } else if (fs.exists(join_path(path, paths::kHfConfig))) {
    evidence.kind = EvidenceKind::kModel;
    read_model(fs, evidence);
  } else if (fs.exists(join_path(path, paths::kRecipe))) {
    evidence.kind = EvidenceKind::kRun;
    read_run(fs, evidence);
  } else {
    fail(ErrorKind::kInput, printable(path), ": holds neither ", paths::kRecipe, " (a run) nor ",
         kBundleFile, " (a reference bundle) nor ", paths::kHfConfig,
         " (a Hugging Face directory or a checkpoint)");
  }
  complete_from_checkpoint(fs, evidence);
  return evidence;
}

}  // namespace lockstep
