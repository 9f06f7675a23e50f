#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "io/jsonl.h"

namespace lockstep {

// RUN/events.jsonl: what happened to the run, a line each: "start", "resume", "fork", "save",
// "warning", "replay", "evaluation", "stop", "finish". Not thread-safe.
class EventLog {
 public:
  EventLog(FileSystem& fs, const std::string& run_directory);
  // `fields` are put after "event", "time" (UTC) and "step".
  void add(std::string_view event, std::int64_t step, const OrderedJson& fields = {});

 private:
  JsonlWriter writer_;
};

// "2026-01-31T12:00:00Z", for people; nothing is ordered by it.
[[nodiscard]] std::string utc_now();

}  // namespace lockstep
