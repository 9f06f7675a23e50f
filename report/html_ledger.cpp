#include "report/html_ledger.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/paths.h"
#include "io/jsonl.h"

namespace lockstep {
namespace {

struct EpochRanges {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // [begin, end)
  std::int64_t passed_over = 0;
};

ConsumedLedger::Epoch count(std::int64_t epoch, EpochRanges& taken) {
  ConsumedLedger::Epoch out{.epoch = epoch, .passed_over = taken.passed_over};
  std::sort(taken.ranges.begin(), taken.ranges.end());
  std::int64_t reached = 0;
  for (const auto& [begin, end] : taken.ranges) {
    const std::int64_t fresh = std::max<std::int64_t>(0, end - std::max(begin, reached));
    out.entries += fresh;
    out.repeated += end - begin - fresh;
    reached = std::max(reached, end);
  }
  return out;
}

}  // namespace

bool ConsumedLedger::ok() const {
  return steps_follow && std::all_of(epochs.begin(), epochs.end(),
                                     [](const Epoch& epoch) { return epoch.repeated == 0; });
}

ConsumedLedger read_ledger(FileSystem& fs, const std::string& run) {
  ConsumedLedger ledger;
  const std::string path = join_path(join_path(run, paths::kConsumed), "ranges.jsonl");
  if (!fs.exists(path)) return ledger;
  std::map<std::int64_t, EpochRanges> epochs;
  read_jsonl(fs, path, [&](const JsonlLine& line) {
    const std::string where = concat(printable(path), ":", line.number);
    try {
      const Json range = parse_json(line.text, where);
      const auto number = [&](const char* key) { return range.at(key).get<std::int64_t>(); };
      const std::int64_t begin = number("begin");
      const std::int64_t end = number("end");
      if (begin < 0 || end < begin) fail(ErrorKind::kData, where, ": a range that ends early");
      EpochRanges& epoch = epochs[number("epoch")];
      epoch.ranges.emplace_back(begin, end);
      if (range.at("passed_over").get<bool>()) epoch.passed_over += end - begin;
      if (ledger.ranges++ == 0) {
        ledger.first_step = number("first_step");
      } else if (number("first_step") != ledger.last_step + 1) {
        ledger.steps_follow = false;
      }
      ledger.last_step = number("last_step");
    } catch (const Json::exception& error) {
      fail(ErrorKind::kData, where, ": not a range: ", error.what());
    }
  });
  for (auto& [epoch, taken] : epochs) ledger.epochs.push_back(count(epoch, taken));
  return ledger;
}

}  // namespace lockstep
