#include "train/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/paths.h"

namespace lockstep {
namespace {

constexpr const char* kCsvHeader =
    "step,epoch,batch,loss,ce_loss,z_loss,grad_norm,lr,tokens,targets,tokens_per_s,mfu,seconds,"
    "data_seconds,skipped,batch_digest\n";

std::string csv_line(const StepRecord& r) {
  std::array<char, 512> text{};
  const int length = std::snprintf(
      text.data(), text.size(),
      "%lld,%lld,%lld,%.17g,%.17g,%.17g,%.17g,%.17g,%lld,%lld,%.6g,%.6g,%.6g,%.6g,%d,%s\n",
      static_cast<long long>(r.step), static_cast<long long>(r.epoch),
      static_cast<long long>(r.batch), r.loss, r.ce_loss, r.z_loss, r.grad_norm, r.lr,
      static_cast<long long>(r.tokens), static_cast<long long>(r.targets), r.tokens_per_s, r.mfu,
      r.seconds, r.data_seconds, r.skipped.empty() && !r.passed_over ? 0 : 1,
      r.batch_digest.c_str());
  return {text.data(), static_cast<std::size_t>(std::min<int>(length, text.size() - 1))};
}

// JSON has no NaN; null says that there is no number.
OrderedJson number_or_null(double value, bool absent) {
  return absent || !std::isfinite(value) ? OrderedJson(nullptr) : OrderedJson(value);
}

}  // namespace

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  return statm >> all >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

std::string double_bits(double value) {
  std::string digits(16, '0');
  auto bits = std::bit_cast<std::uint64_t>(value);
  for (std::size_t i = 16; i-- > 0; bits >>= 4U) digits[i] = "0123456789abcdef"[bits & 15U];
  return digits;
}

std::string to_json_line(const StepRecord& r) {
  OrderedJson json;
  json["step"] = r.step;
  json["epoch"] = r.epoch;
  json["batch"] = r.batch;
  json["loss"] = number_or_null(r.loss, r.passed_over);
  json["ce_loss"] = number_or_null(r.ce_loss, r.passed_over);
  json["z_loss"] = number_or_null(r.z_loss, r.passed_over);
  json["loss_bits"] = r.passed_over ? OrderedJson(nullptr) : OrderedJson(double_bits(r.loss));
  json["grad_norm"] = number_or_null(r.grad_norm, r.passed_over);
  json["grad_norm_bits"] =
      r.passed_over ? OrderedJson(nullptr) : OrderedJson(double_bits(r.grad_norm));
  json["lr"] = r.lr;
  json["batch_digest"] = r.batch_digest;
  json["tokens"] = r.tokens;
  json["targets"] = r.targets;
  json["filtered"] = r.filtered;
  json["tokens_per_s"] = r.tokens_per_s;
  json["mfu"] = r.mfu;
  json["seconds"] = r.seconds;
  json["data_seconds"] = r.data_seconds;
  if (r.memory_bytes > 0) json["memory_bytes"] = r.memory_bytes;
  json["skipped"] = !r.skipped.empty() || r.passed_over;
  if (!r.skipped.empty()) json["skip_reason"] = r.skipped;
  if (r.passed_over) json["skip_reason"] = "passed over by train.steps_to_skip";
  return json.dump();
}

std::optional<std::pair<std::int64_t, LoggedStep>> parse_logged_step(std::string_view line,
                                                                     std::string_view what) {
  const Json json = parse_json(line, what);
  try {
    const auto step = json.at("step").get<std::int64_t>();
    if (json.at("loss_bits").is_null()) return {};
    LoggedStep logged;
    logged.loss_bits = json.at("loss_bits").get<std::string>();
    logged.grad_norm_bits = json.at("grad_norm_bits").get<std::string>();
    logged.batch_digest = json.at("batch_digest").get<std::string>();
    logged.loss = json.at("loss").is_null() ? std::nan("") : json.at("loss").get<double>();
    return std::pair{step, logged};
  } catch (const Json::exception& error) {
    fail(ErrorKind::kData, what, ": not a metrics line: ", error.what());
  }
}

MetricsLog::MetricsLog(FileSystem& fs, const std::string& run_directory, std::int64_t last_step,
                       const Options& options) {
  supersede(fs, run_directory, last_step);
  jsonl_ = std::make_unique<JsonlWriter>(fs, join_path(run_directory, paths::kMetrics));
  if (options.csv) open_csv(fs, run_directory, last_step);
  if (options.tensorboard) {
    tensorboard_ = std::make_unique<TensorBoardWriter>(fs, run_directory, last_step + 1);
  }
}

void MetricsLog::supersede(FileSystem& fs, const std::string& run_directory,
                           std::int64_t last_step) {
  const std::string path = join_path(run_directory, paths::kMetrics);
  int serial = 1;
  const auto name_of_serial = [&](int n) {
    return join_path(run_directory, concat("metrics.superseded-", n, ".jsonl"));
  };
  const auto remember = [&](std::string_view text, const std::string& what) {
    if (auto logged = parse_logged_step(text, what); logged && logged->first > last_step) {
      superseded_.insert_or_assign(logged->first, std::move(logged->second));
    }
  };
  for (; fs.exists(name_of_serial(serial)); ++serial) {
    read_jsonl(fs, name_of_serial(serial), [&](const JsonlLine& line) {
      remember(line.text, concat(name_of_serial(serial), ":", line.number));
    });
  }
  if (!fs.exists(path)) return;
  std::string kept;
  std::string later;
  read_jsonl(fs, path, [&](const JsonlLine& line) {
    const std::string what = concat(path, ":", line.number);
    const Json json = parse_json(line.text, what);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) {
      fail(ErrorKind::kData, what, ": not a metrics line: no step");
    }
    const bool keep = json["step"].get<std::int64_t>() <= last_step;
    (keep ? kept : later).append(line.text).append("\n");
    if (!keep) remember(line.text, what);
  });
  if (later.empty()) return;
  write_file_atomic(fs, name_of_serial(serial), std::string_view(later));
  write_file_atomic(fs, path, std::string_view(kept));
}

void MetricsLog::open_csv(FileSystem& fs, const std::string& run_directory,
                          std::int64_t last_step) {
  const std::string path = join_path(run_directory, paths::kMetricsCsv);
  std::string kept = kCsvHeader;
  if (fs.exists(path)) {
    bool first = true;
    read_jsonl(fs, path, [&](const JsonlLine& line) {
      const bool header = std::exchange(first, false);
      if (header || std::strtoll(std::string(line.text).c_str(), nullptr, 10) > last_step) return;
      kept.append(line.text).append("\n");
    });
  }
  write_file_atomic(fs, path, std::string_view(kept));
  csv_ = fs.open_output(path, OpenMode::kAppend);
}

void MetricsLog::add(const StepRecord& record) {
  jsonl_->append_line(to_json_line(record));
  if (csv_) csv_->append(std::string_view(csv_line(record)));
  if (!tensorboard_ || record.passed_over) return;
  const std::array<std::pair<std::string_view, double>, 8> values = {{
      {"train/loss", record.loss},
      {"train/ce_loss", record.ce_loss},
      {"train/z_loss", record.z_loss},
      {"optim/grad_norm", record.grad_norm},
      {"optim/lr", record.lr},
      {"optim/step_skipped", record.skipped.empty() ? 0.0 : 1.0},
      {"throughput/tokens_per_s", record.tokens_per_s},
      {"throughput/mfu", record.mfu},
  }};
  tensorboard_->scalars(record.step, values);
}

void ReplayCheck::add(const StepRecord& record) {
  const auto found = logged_.find(record.step);
  if (found == logged_.end() || record.passed_over) return;
  const LoggedStep& before = found->second;
  if (compared_++ == 0) first_ = record.step;
  last_ = record.step;
  if (before.loss_bits == double_bits(record.loss) &&
      before.grad_norm_bits == double_bits(record.grad_norm) &&
      before.batch_digest == record.batch_digest) {
    return;
  }
  if (different_++ == 0) first_different_ = record.step;
  max_difference_ = std::max(max_difference_, std::abs(before.loss - record.loss));
}

std::string ReplayCheck::text() const {
  const std::string steps = first_ == last_ ? concat("step ", first_, " was")
                                            : concat("steps ", first_, " to ", last_, " were");
  if (different_ == 0) {
    return concat(steps, " trained again: all ", compared_,
                  " equal what was logged before (difference 0.000, compared on bits)");
  }
  return concat(steps, " trained again: ", different_, " of ", compared_,
                " differ from what was logged before, first step ", first_different_,
                ", largest loss difference ", max_difference_);
}

}  // namespace lockstep
