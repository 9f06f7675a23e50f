#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "data/batch.h"
#include "data/leaf_builder.h"
#include "data/step_plan.h"

namespace lockstep {

struct LoaderOptions {
  std::uint64_t microbatch = 1;  // instances a leaf; divides the batch
  // The leaves of each step that this process reads: [first_leaf, first_leaf + leaf_count).
  // leaf_count 0: all from first_leaf on.
  std::uint64_t first_leaf = 0;
  std::uint64_t leaf_count = 0;
  LeafRules rules;
  // Batches made ahead by a background thread; 0: made when asked for. No result depends on it.
  std::size_t prefetch = 2;
};

// Gives the batch of step k, then k+1, ...: each a pure function of (source, plan, k). One caller
// at a time. `source` and `plan` must outlive it.
class Loader {
 public:
  // kConfig when the microbatch does not divide the batch, the leaves are out of range, or source
  // and plan count instances differently.
  Loader(const InstanceSource& source, const StepPlan& plan, const LoaderOptions& options,
         std::uint64_t first_step = 0);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next call of next() gives `step`. What was made ahead is thrown away.
  void seek(std::uint64_t step);
  [[nodiscard]] std::uint64_t step() const { return next_step_; }
  // Overwrites `batch` with step() and moves on; its old buffers are used again. What reading
  // throws (kData, kIo) is thrown here, at the step that it belongs to; calling again tries again.
  void next(Batch& batch);

 private:
  struct Made {
    Batch batch;
    std::exception_ptr error;
  };
  void make(std::uint64_t step, Batch& batch);
  void make_ahead();
  void restart(std::uint64_t step);

  const InstanceSource& source_;
  const StepPlan& plan_;
  LoaderOptions options_;
  LeafBuilder builder_;                 // of the thread that makes batches
  std::vector<std::uint64_t> entries_;  // likewise
  std::uint64_t next_step_;             // of the caller

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Made> ready_;        // steps next_step_, next_step_ + 1, ...; an error is the last
  std::vector<Batch> spare_;      // buffers
  std::uint64_t make_step_;       // the next one to make
  std::uint64_t generation_ = 0;  // of seeks: what an older one asked for is dropped
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace lockstep
