#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/file.h"

namespace lockstep {

// What RUN/consumed/ranges.jsonl says by itself, without the data: an order is a permutation, so
// entries taken once are instances taken once.
struct ConsumedLedger {
  struct Epoch {
    std::int64_t epoch = 0;
    std::int64_t entries = 0;   // taken, each counted once
    std::int64_t repeated = 0;  // taken again
    std::int64_t passed_over = 0;
  };
  std::int64_t ranges = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  bool steps_follow = true;  // each range begins where the one before it ended
  std::vector<Epoch> epochs;

  [[nodiscard]] bool ok() const;
};

// Without ranges when the file is not there. kData for a damaged line; a torn last one is left out.
[[nodiscard]] ConsumedLedger read_ledger(FileSystem& fs, const std::string& run);

}  // namespace lockstep
