#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "data/order.h"

namespace lockstep {

struct PlanSpec {
  OrderKind kind = OrderKind::kFeistel;
  std::uint64_t seed = 0;
  std::uint64_t instances = 0;  // N
  std::uint64_t batch = 0;      // B, instances a step over all ranks
  std::string cache_directory;  // as OrderSpec's
};

// Which instances step k sees: a pure function of (instances, order kind, seed, batch, k); there is
// no other state. k counts from 0 and is the number of batches before it. Epochs count from 1; step
// k is step k mod S of epoch 1 + k div S, S = floor(N / B), and takes entries [j B, (j+1) B) of
// that epoch's order. The tail that fills no batch is dropped. Thread-safe. `fs` must outlive it.
class StepPlan {
 public:
  // kConfig when B is 0; kData, naming both counts, when N < B: an epoch would have no step.
  StepPlan(FileSystem& fs, PlanSpec spec);

  [[nodiscard]] const PlanSpec& spec() const { return spec_; }
  [[nodiscard]] std::uint64_t steps_per_epoch() const { return spec_.instances / spec_.batch; }
  [[nodiscard]] std::uint64_t epoch_of(std::uint64_t step) const {
    return 1 + step / steps_per_epoch();
  }
  // Entries [first, first + out.size()) of the step's batch; first + out.size() <= B. The first
  // call in an epoch makes that epoch's order (slow for olmo-core).
  void entries(std::uint64_t step, std::uint64_t first, std::span<std::uint64_t> out) const;

 private:
  [[nodiscard]] std::shared_ptr<const Order> order_of_epoch(std::uint64_t epoch) const;

  FileSystem& fs_;
  PlanSpec spec_;
  mutable std::mutex mutex_;
  // The epoch last asked for. Shared so that a reader of the old epoch may go on while another
  // thread enters the next.
  mutable std::shared_ptr<const Order> order_;
  mutable std::uint64_t order_epoch_ = 0;
};

}  // namespace lockstep
