#include "report/html_run.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/paths.h"
#include "io/jsonl.h"

namespace lockstep {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr std::uint64_t kMaxRecipeBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMostEvents = 400;  // the newest

double number_of(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : kNone;
}

std::string text_of(const Json& event) {
  std::string text;
  for (const auto& [key, value] : event.items()) {
    if (key == "event" || key == "time" || key == "step" || value.is_structured()) continue;
    text += concat(text.empty() ? "" : "; ", key, ": ",
                   value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

}  // namespace

const char* metrics_key(RunColumn column) {
  static constexpr std::array<const char*, kRunColumns> kKeys = {
      "loss", "grad_norm", "lr", "tokens_per_s", "mfu", "seconds", "data_seconds", "memory_bytes"};
  return kKeys[static_cast<std::size_t>(column)];
}

RunReader::RunReader(FileSystem& fs, const Evidence& evidence, std::size_t capacity) : fs_(fs) {
  page_.name = evidence.name;
  page_.path = evidence.path;
  page_.kind = evidence.kind;
  page_.producer = evidence.producer;
  page_.precision = evidence.precision;
  page_.series = StepSeries(kRunColumns, capacity);
  recipe_path_ = evidence.recipe_path;
  evaluation_files_ = evidence.evaluations;
  first_notes_ = evidence.notes;
}

void RunReader::refresh() {
  // A fork changes it.
  if (!recipe_path_.empty()) page_.recipe_toml = read_file(fs_, recipe_path_, kMaxRecipeBytes);
  read_metrics();
  read_events();
  read_evaluations();
  page_.checkpoints = page_.kind == EvidenceKind::kRun
                          ? list_checkpoints(fs_, join_path(page_.path, paths::kCheckpoints))
                          : std::vector<std::int64_t>{};
  page_.notes = first_notes_;
  for (const auto& [step, note] : evaluation_notes_) page_.notes.push_back(note);
  if (out_of_order_ > 0) {
    page_.notes.push_back(
        concat(printable(page_.path), ": ", out_of_order_, " lines of ", paths::kMetrics,
               " log a step that an earlier line has; the charts take the first"));
  }
}

void RunReader::restart() {
  ++generation_;
  offset_ = 0;
  lines_ = 0;
  last_line_.clear();
  out_of_order_ = 0;
  page_.series.clear();
  page_.totals = {};
}

// A resume writes the file anew up to its checkpoint. Lines hold times, so another line in the
// place of the last one read is seen.
bool RunReader::replaced(const InputFile& file) const {
  if (file.size() < offset_) return true;
  std::string there(last_line_.size(), '\0');
  file.read_at(offset_ - there.size(), std::as_writable_bytes(std::span(there)));
  return there != last_line_;
}

void RunReader::read_metrics() {
  const std::string path = join_path(page_.path, paths::kMetrics);
  if (!fs_.exists(path)) return;
  const auto file = fs_.open_input(path);
  if (replaced(*file)) restart();
  std::string buffer;  // begins at offset_
  for (std::uint64_t end = offset_; end < file->size();) {
    const std::size_t held = buffer.size();
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, file->size() - end));
    buffer.resize(held + part);
    file->read_at(end, std::as_writable_bytes(std::span(buffer).subspan(held)));
    end += part;
    std::size_t begin = 0;
    for (std::size_t newline = buffer.find('\n', held); newline != std::string::npos;
         newline = buffer.find('\n', begin)) {
      const auto line = std::string_view(buffer).substr(begin, newline - begin);
      if (!line.empty()) take_line(line, concat(printable(path), ":", lines_ + 1));
      last_line_.assign(buffer, begin, newline + 1 - begin);
      offset_ += last_line_.size();
      ++lines_;
      begin = newline + 1;
    }
    buffer.erase(0, begin);
    if (buffer.size() > kLongestLine) {
      fail(ErrorKind::kData, printable(path), ":", lines_ + 1, ": is longer than ", kLongestLine,
           " bytes");
    }
  }
}

void RunReader::take_line(std::string_view text, const std::string& where) {
  Json line;
  try {
    line = parse_json(text, where);
  } catch (const Error& error) {
    throw Error(ErrorKind::kData, error.what());
  }
  const auto found = line.is_object() ? line.find("step") : line.end();
  if (found == line.end() || !found->is_number_integer() || found->get<std::int64_t>() < 0) {
    fail(ErrorKind::kData, where, ": not a metrics line: no step");
  }
  const auto step = found->get<std::int64_t>();
  if (step <= page_.series.last_step()) {
    ++out_of_order_;
    return;
  }
  std::array<double, kRunColumns> values{};
  for (std::size_t i = 0; i < kRunColumns; ++i) {
    values[i] = number_of(line, metrics_key(static_cast<RunColumn>(i)));
  }
  page_.series.add(step, values);
  const auto value = [&](RunColumn column) { return values[static_cast<std::size_t>(column)]; };
  RunTotals& totals = page_.totals;
  if (totals.steps++ == 0) totals.first_step = step;
  totals.last_step = step;
  if (const double tokens = number_of(line, "tokens"); tokens >= 0 && tokens < 9e18) {
    totals.tokens = static_cast<std::int64_t>(tokens);
  }
  if (const auto skipped = line.find("skipped"); skipped != line.end() && *skipped == true) {
    ++totals.skipped;
  }
  if (std::isfinite(value(RunColumn::kLoss))) totals.last_loss = value(RunColumn::kLoss);
  const double seconds = value(RunColumn::kSeconds);
  if (seconds > 0) totals.seconds += seconds;
  if (seconds > 0 && value(RunColumn::kTokensPerSecond) > 0) {
    totals.tokens_timed += seconds * value(RunColumn::kTokensPerSecond);
    totals.timed_seconds += seconds;
  }
  if (value(RunColumn::kMfu) > 0) {
    totals.mfu_sum += value(RunColumn::kMfu);
    ++totals.mfu_steps;
  }
  if (value(RunColumn::kMemoryBytes) > totals.most_memory_bytes) {
    totals.most_memory_bytes = value(RunColumn::kMemoryBytes);
  }
}

void RunReader::read_events() {
  const std::string path = join_path(page_.path, paths::kEvents);
  if (!fs_.exists(path)) return;
  const std::uint64_t bytes = fs_.file_size(path);
  if (bytes == events_bytes_) return;
  page_.events.clear();
  page_.saves.clear();
  read_jsonl(fs_, path, [&](const JsonlLine& line) {
    const Json event = parse_json(line.text, concat(printable(path), ":", line.number));
    if (!event.is_object() || !event.contains("event") || !event["event"].is_string()) return;
    RunEvent found{.event = event["event"].get<std::string>(),
                   .time = event.contains("time") && event["time"].is_string()
                               ? event["time"].get<std::string>()
                               : "",
                   .step = 0,
                   .text = text_of(event)};
    if (event.contains("step") && event["step"].is_number_integer()) {
      found.step = event["step"].get<std::int64_t>();
    }
    if (found.event == "save") {
      page_.saves.push_back(found.step);
    } else {
      page_.events.push_back(std::move(found));
    }
  });
  if (page_.events.size() > kMostEvents) {
    page_.events.erase(page_.events.begin(), page_.events.end() - kMostEvents);
  }
  events_bytes_ = bytes;
}

void RunReader::read_evaluations() {
  constexpr std::string_view kEnding = ".json";
  const std::string directory = join_path(page_.path, paths::kEvals);
  if (fs_.is_directory(directory)) {
    for (const std::string& name : fs_.list(directory)) {
      if (!name.ends_with(kEnding)) continue;
      const auto step =
          paths::step_of(std::string_view(name).substr(0, name.size() - kEnding.size()));
      if (step) evaluation_files_[*step] = join_path(directory, name);
    }
  }
  for (const auto& [step, path] : evaluation_files_) {
    const std::uint64_t bytes = fs_.file_size(path);
    const auto known = evaluation_bytes_.find(step);
    if (known != evaluation_bytes_.end() && known->second == bytes) continue;
    evaluation_bytes_[step] = bytes;
    evaluation_notes_.erase(step);
    try {
      page_.evaluations[step] = read_evaluation(fs_, path);
    } catch (const Error& error) {
      page_.evaluations.erase(step);
      evaluation_notes_[step] = concat("passed over: ", error.what());
    }
  }
}

}  // namespace lockstep
