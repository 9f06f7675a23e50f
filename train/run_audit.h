#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "io/file.h"

namespace lockstep {

// Whether the batches that a run logged are those of its plan, found by reading them again.
struct RunAudit {
  struct Wrong {
    std::int64_t step = 0;
    std::string logged;  // digest of the batch
    std::string found;
  };
  std::uint64_t steps = 0;            // logged
  std::uint64_t batches_checked = 0;  // read again
  std::vector<Wrong> wrong;           // of these, the ones with another digest
  std::uint64_t instances_used = 0;
  std::uint64_t instances_repeated = 0;  // used twice or more in one epoch
  std::vector<std::pair<std::string, std::uint64_t>> tokens_by_label;  // of the batches checked

  [[nodiscard]] bool ok() const { return wrong.empty() && instances_repeated == 0; }
};

struct RunAuditOptions {
  std::uint64_t every = 1;         // reads every n-th logged batch again
  std::uint64_t most_batches = 0;  // and, where that is more than this, evenly fewer; 0: no bound
  // Called before a batch is read.
  std::function<void(std::int64_t step, std::int64_t last_step)> progress = {};
};

// `run` is a run directory whose data are where its recipe says. Coverage is counted over every
// logged step, by the plan. Throws as read_recipe and TrainingData; kInput when no step is logged.
[[nodiscard]] RunAudit audit_run(FileSystem& fs, const std::string& run,
                                 const RunAuditOptions& options);

}  // namespace lockstep
