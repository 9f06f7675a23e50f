#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "data/index.h"

namespace lockstep {

// The token files of an index, opened as they are needed; at most `open_files` stay open, so that a
// mix of ten thousand files fits the process's limit. Thread-safe. `fs` and `index` must outlive
// it.
class TokenFilePool {
 public:
  TokenFilePool(FileSystem& fs, const DataIndex& index, std::size_t open_files = 128);

  // File `i` of the index; kData when it does not hold the tokens that the index recorded.
  [[nodiscard]] std::shared_ptr<const TokenFile> file(std::size_t i);

 private:
  struct Slot {
    // Shared so that a reader keeps its file while another thread evicts it.
    std::shared_ptr<const TokenFile> file;
    std::uint64_t last_use = 0;
  };
  void evict_one();

  FileSystem& fs_;
  const DataIndex& index_;
  std::size_t limit_;
  std::mutex mutex_;
  std::vector<Slot> slots_;  // by file
  std::vector<std::size_t> open_;
  std::uint64_t uses_ = 0;
};

}  // namespace lockstep
