#include "base/json.h"

#include <set>
#include <vector>

#include "base/error.h"

namespace lockstep {

Json parse_json(std::string_view text, std::string_view what) {
  constexpr int kMaxDepth = 64;
  // The parser takes NUL for the end and would ignore all that follows it.
  if (const auto at = text.find('\0'); at != std::string_view::npos) {
    fail(ErrorKind::kInput, what, ": not valid JSON: NUL at byte ", at);
  }
  std::vector<std::set<std::string>> keys;
  const auto guard = [&](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (depth >= kMaxDepth) {
          fail(ErrorKind::kInput, what, ": JSON nested deeper than ", kMaxDepth, " levels");
        }
        keys.emplace_back();
        break;
      case Json::parse_event_t::key:
        if (!keys.back().insert(parsed.get<std::string>()).second) {
          fail(ErrorKind::kInput, what, ": key ", parsed.dump(), " appears twice in one object");
        }
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::value:
        break;
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), guard);
  } catch (const Json::exception& error) {
    std::string reason = error.what();
    if (const auto end = reason.find("] "); end != std::string::npos)
      reason = reason.substr(end + 2);
    for (char& c : reason) {
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    }
    fail(ErrorKind::kInput, what, ": not valid JSON: ", reason);
  }
}

}  // namespace lockstep
