#include "train/profile.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr int kProcess = 1;
// What does not fit is counted in the file, not kept.
constexpr std::size_t kMostOps = std::size_t{1} << 20U;

double micro(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }

OrderedJson complete(const std::string& name, Profile::Row row, std::int64_t begin_ns,
                     std::int64_t end_ns) {
  return {{"name", name},          {"ph", "X"},
          {"ts", micro(begin_ns)}, {"dur", micro(end_ns - begin_ns)},
          {"pid", kProcess},       {"tid", static_cast<int>(row)}};
}

OrderedJson row_name(Profile::Row row, const char* name) {
  return {{"name", "thread_name"},
          {"ph", "M"},
          {"pid", kProcess},
          {"tid", static_cast<int>(row)},
          {"args", {{"name", name}}}};
}

}  // namespace

Profile::Profile(const ProfileConfig& config, std::string directory)
    : first_step_(config.range().first),
      last_step_(config.range().second),
      path_(join_path(std::move(directory), "profile.json")),
      ops_(first_step_ > 0 ? kMostOps : 0) {}

void Profile::begin(std::int64_t step) {
  if (covers(step)) active_ = true;
}

void Profile::add(Row row, const std::string& name, std::int64_t begin_ns, std::int64_t end_ns) {
  if (!active_) return;
  const std::lock_guard lock(mutex_);
  spans_.push_back({row, name, begin_ns, end_ns});
}

void Profile::write(FileSystem& fs) {
  if (!active_) return;
  active_ = false;
  const std::lock_guard lock(mutex_);
  std::int64_t origin = now_ns();
  for (const Span& span : spans_) origin = std::min(origin, span.begin_ns);
  for (const TraceEvent& op : ops_.events()) origin = std::min(origin, op.begin_ns);
  OrderedJson events = {row_name(Row::kRun, "run"), row_name(Row::kOps, "ops"),
                        row_name(Row::kLoader, "loader"),
                        row_name(Row::kSaver, "checkpoint writer")};
  for (const Span& span : spans_) {
    events.push_back(complete(span.name, span.row, span.begin_ns - origin, span.end_ns - origin));
  }
  for (const TraceEvent& op : ops_.events()) {
    OrderedJson event = complete(op.name, Row::kOps, op.begin_ns - origin, op.end_ns - origin);
    event["args"] = {{"flops", op.flops}, {"bytes", op.bytes}};
    events.push_back(std::move(event));
  }
  const OrderedJson document = {
      {"displayTimeUnit", "ms"},
      {"otherData",
       {{"first_step", first_step_}, {"last_step", last_step_}, {"ops_dropped", ops_.dropped()}}},
      {"traceEvents", std::move(events)}};
  write_file_atomic(fs, path_, document.dump());
  spans_.clear();
  ops_.clear();
}

}  // namespace lockstep
