#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/step_plan.h"

namespace lockstep {

// What a whole epoch of a plan does to the instances, by asking the plan as ranks would.
struct PlanAudit {
  std::uint64_t instances = 0;
  std::uint64_t steps = 0;
  std::uint64_t seen_once = 0;
  std::uint64_t repeated = 0;      // instances seen twice or more
  std::uint64_t missed = 0;        // seen never
  std::uint64_t dropped_tail = 0;  // how many must be missed: N mod B
  std::uint64_t split_steps = 0;   // steps where some number of ranks got other entries together
  // First finding, for people; empty when all is well.
  std::string finding{};

  [[nodiscard]] bool ok() const {
    return repeated == 0 && missed == dropped_tail && split_steps == 0;
  }
};

// Walks every step of `epoch` once as one reader and once for each of `ranks` (numbers of ranks
// that divide the batch), each rank taking its contiguous part. Every instance must come up exactly
// once, the dropped tail excepted, and each step's parts must join to the step's batch. Memory: 2
// bits an instance. kConfig when a number of ranks does not divide the batch.
[[nodiscard]] PlanAudit audit_epoch(const StepPlan& plan, std::uint64_t epoch,
                                    std::span<const std::uint64_t> ranks);

// The same counts for entries from anywhere, such as a log of what ranks really consumed.
class CoverageCounter {
 public:
  explicit CoverageCounter(std::uint64_t instances);
  // kData for an id that is no instance.
  void add(std::uint64_t instance);
  [[nodiscard]] std::uint64_t seen_once() const { return once_ - repeated_; }
  [[nodiscard]] std::uint64_t repeated() const { return repeated_; }
  [[nodiscard]] std::uint64_t missed() const { return seen_.size() - once_; }

 private:
  std::vector<bool> seen_;
  std::vector<bool> seen_again_;
  std::uint64_t once_ = 0;  // once or more
  std::uint64_t repeated_ = 0;
};

}  // namespace lockstep
