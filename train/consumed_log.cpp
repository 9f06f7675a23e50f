#include "train/consumed_log.h"

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/paths.h"

namespace lockstep {

ConsumedLog::ConsumedLog(FileSystem& fs, const std::string& run_directory, std::int64_t last_step) {
  const std::string directory = join_path(run_directory, paths::kConsumed);
  const std::string path = join_path(directory, "ranges.jsonl");
  fs.create_directories(directory);
  if (fs.exists(path)) {
    std::string kept;
    read_jsonl(fs, path, [&](const JsonlLine& line) {
      const Json json = parse_json(line.text, concat(path, ":", line.number));
      if (!json.is_object() || !json.contains("last_step") ||
          !json["last_step"].is_number_integer()) {
        fail(ErrorKind::kData, path, ":", line.number, ": not a range: no last_step");
      }
      if (json["last_step"].get<std::int64_t>() <= last_step) kept.append(line.text).append("\n");
    });
    write_file_atomic(fs, path, std::string_view(kept));
  }
  writer_ = std::make_unique<JsonlWriter>(fs, path);
}

void ConsumedLog::add(const Entry& entry) {
  if (open_ && (entry.epoch != last_.epoch || entry.passed_over != last_.passed_over ||
                entry.begin != last_.end)) {
    flush();
  }
  if (!open_) {
    first_ = entry;
    digest_ = Hasher128();
    open_ = true;
  }
  last_ = entry;
  digest_.add(entry.batch_digest);
}

void ConsumedLog::flush() {
  if (!open_) return;
  OrderedJson json;
  json["first_step"] = first_.step;
  json["last_step"] = last_.step;
  json["epoch"] = first_.epoch;
  json["begin"] = first_.begin;
  json["end"] = last_.end;
  json["passed_over"] = first_.passed_over;
  json["digest"] = digest_.hex();
  writer_->append_line(json.dump());
  open_ = false;
}

}  // namespace lockstep
