#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/hash.h"
#include "io/jsonl.h"

namespace lockstep {

// RUN/consumed/ranges.jsonl: which entries of which epoch's order the run's steps used, as ranges
// of consecutive steps, each with a digest over the batch digests of its steps. A range ends at a
// checkpoint, so a resume cuts the file at a line. Not thread-safe.
class ConsumedLog {
 public:
  // Keeps the ranges up to last_step.
  ConsumedLog(FileSystem& fs, const std::string& run_directory, std::int64_t last_step);

  struct Entry {
    std::int64_t step = 0;
    std::int64_t epoch = 0;
    std::int64_t begin = 0;  // entries [begin, end) of the epoch's order
    std::int64_t end = 0;
    bool passed_over = false;
    std::string batch_digest;
  };
  // Steps in order. A new epoch, or a change of passed_over, begins a new range.
  void add(const Entry& entry);
  // Writes the range so far; call it before the step's checkpoint is saved.
  void flush();

 private:
  std::unique_ptr<JsonlWriter> writer_;
  Entry first_;
  Entry last_;
  bool open_ = false;
  Hasher128 digest_;
};

}  // namespace lockstep
