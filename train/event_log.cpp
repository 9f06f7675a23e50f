#include "train/event_log.h"

#include <array>
#include <ctime>

#include "checkpoint/paths.h"

namespace lockstep {

EventLog::EventLog(FileSystem& fs, const std::string& run_directory)
    : writer_(fs, join_path(run_directory, paths::kEvents)) {}

void EventLog::add(std::string_view event, std::int64_t step, const OrderedJson& fields) {
  OrderedJson line;
  line["event"] = event;
  line["time"] = utc_now();
  line["step"] = step;
  for (const auto& [key, value] : fields.items()) line[key] = value;
  writer_.append_line(line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

std::string utc_now() {
  std::array<char, 32> text{};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

}  // namespace lockstep
