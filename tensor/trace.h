#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace lockstep {

// One op as it ran: when (nanoseconds of the monotonic clock) and what it had to do.
struct TraceEvent {
  const char* name = nullptr;  // a literal
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  double flops = 0;
  double bytes = 0;
};

// Collects events in order; capacity is reserved ahead so that a traced step does not allocate, and
// what does not fit is counted, not kept. Not thread-safe.
class Trace {
 public:
  explicit Trace(std::size_t capacity) { events_.reserve(capacity); }
  void add(const TraceEvent& event) {
    if (events_.size() < events_.capacity()) {
      events_.push_back(event);
    } else {
      ++dropped_;
    }
  }
  void clear() {
    events_.clear();
    dropped_ = 0;
  }
  [[nodiscard]] const std::vector<TraceEvent>& events() const { return events_; }
  [[nodiscard]] std::size_t dropped() const { return dropped_; }

 private:
  std::vector<TraceEvent> events_;
  std::size_t dropped_ = 0;
};

// Adds an event for its lifetime to the trace, if there is one.
class TraceSpan {
 public:
  TraceSpan(Trace* trace, const char* name, double flops, double bytes)
      : trace_(trace), event_{name, trace == nullptr ? 0 : now_ns(), 0, flops, bytes} {}
  ~TraceSpan() {
    if (trace_ == nullptr) return;
    event_.end_ns = now_ns();
    trace_->add(event_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  Trace* trace_;
  TraceEvent event_;
};

}  // namespace lockstep
