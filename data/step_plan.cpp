#include "data/step_plan.h"

#include "base/error.h"

namespace lockstep {

StepPlan::StepPlan(FileSystem& fs, PlanSpec spec) : fs_(fs), spec_(std::move(spec)) {
  if (spec_.batch == 0) fail(ErrorKind::kConfig, "data plan: a batch of 0 instances");
  if (spec_.instances < spec_.batch) {
    fail(ErrorKind::kData, "data plan: ", spec_.instances, " instances do not fill one batch of ",
         spec_.batch,
         ", so an epoch has no step; lower the batch or the sequence length, or add data");
  }
}

void StepPlan::entries(std::uint64_t step, std::uint64_t first,
                       std::span<std::uint64_t> out) const {
  LOCKSTEP_CHECK(out.size() <= spec_.batch && first <= spec_.batch - out.size(), "entries ", first,
                 "+", out.size(), " of a batch of ", spec_.batch);
  const auto order = order_of_epoch(epoch_of(step));
  const std::uint64_t begin = step % steps_per_epoch() * spec_.batch + first;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = order->instance(begin + i);
}

std::shared_ptr<const Order> StepPlan::order_of_epoch(std::uint64_t epoch) const {
  const std::lock_guard lock(mutex_);
  if (order_epoch_ != epoch) {
    order_.reset();  // the old one's gigabytes first
    order_ = make_order(fs_, {.kind = spec_.kind,
                              .seed = spec_.seed,
                              .epoch = epoch,
                              .instances = spec_.instances,
                              .cache_directory = spec_.cache_directory});
    order_epoch_ = epoch;
  }
  return order_;
}

}  // namespace lockstep
