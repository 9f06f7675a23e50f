#include "data/audit.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {

CoverageCounter::CoverageCounter(std::uint64_t instances)
    : seen_(instances), seen_again_(instances) {}

void CoverageCounter::add(std::uint64_t instance) {
  if (instance >= seen_.size()) {
    fail(ErrorKind::kData, "audit: instance ", instance, " of a data set of ", seen_.size());
  }
  if (!seen_[instance]) {
    seen_[instance] = true;
    ++once_;
  } else if (!seen_again_[instance]) {
    seen_again_[instance] = true;
    ++repeated_;
  }
}

PlanAudit audit_epoch(const StepPlan& plan, std::uint64_t epoch,
                      std::span<const std::uint64_t> ranks) {
  if (epoch == 0) fail(ErrorKind::kConfig, "audit: epoch 0; epochs count from 1");
  const std::uint64_t batch = plan.spec().batch;
  for (const std::uint64_t count : ranks) {
    if (count == 0 || batch % count != 0) {
      fail(ErrorKind::kConfig, "audit: ", count, " ranks do not divide a batch of ", batch);
    }
  }
  PlanAudit audit{.instances = plan.spec().instances,
                  .steps = plan.steps_per_epoch(),
                  .dropped_tail = plan.spec().instances % batch};
  CoverageCounter coverage(audit.instances);
  std::vector<std::uint64_t> whole(batch);
  std::vector<std::uint64_t> parts(batch);
  for (std::uint64_t i = 0; i < audit.steps; ++i) {
    const std::uint64_t step = (epoch - 1) * audit.steps + i;
    plan.entries(step, 0, whole);
    for (const std::uint64_t id : whole) coverage.add(id);
    for (const std::uint64_t count : ranks) {
      const std::uint64_t share = batch / count;
      for (std::uint64_t rank = 0; rank < count; ++rank) {
        plan.entries(step, rank * share, std::span(parts).subspan(rank * share, share));
      }
      if (parts == whole) continue;
      ++audit.split_steps;
      if (audit.finding.empty()) {
        audit.finding = concat("step ", step, ": ", count, " ranks read other entries than one");
      }
    }
  }
  audit.seen_once = coverage.seen_once();
  audit.repeated = coverage.repeated();
  audit.missed = coverage.missed();
  if (audit.finding.empty() && !audit.ok()) {
    audit.finding = concat(audit.repeated, " instances twice or more, ", audit.missed,
                           " never where ", audit.dropped_tail, " are dropped");
  }
  return audit;
}

}  // namespace lockstep
