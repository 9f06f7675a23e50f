#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io/file.h"

namespace lockstep {

// Appends lines to a file that survives crashes: each line is one write(2) on an O_APPEND file.
// Opening cuts off a torn last line (no newline) left by a crash; after an append that threw, the
// next one first cuts off what it left. `fs` must outlive it. Not thread-safe.
class JsonlWriter {
 public:
  JsonlWriter(FileSystem& fs, const std::string& path);

  // `json` is one JSON value without a newline (kBug otherwise); the newline is added.
  void append_line(std::string_view json);
  void sync() { file_->sync(); }
  void close() { file_->close(); }

 private:
  FileSystem& fs_;
  std::string path_;
  std::unique_ptr<OutputFile> file_;
  std::uint64_t complete_bytes_ = 0;
  bool torn_ = false;
  std::string line_;
};

struct JsonlLine {
  std::string_view text;     // without the newline; valid during the call only
  std::uint64_t number = 0;  // from 1
  std::uint64_t offset = 0;  // of its first byte
};

struct JsonlTail {
  std::uint64_t lines = 0;           // complete ones, all handed out
  std::uint64_t complete_bytes = 0;  // what they take, newlines included
  std::uint64_t torn_bytes = 0;      // after the last newline: a line that was not finished
};

// Calls `take` for each complete line in order and reports a torn last line instead of handing it
// out. Empty lines are skipped but counted. Memory is bounded by the longest line; kData when one
// is longer than `max_line_bytes`.
JsonlTail read_jsonl(FileSystem& fs, const std::string& path,
                     const std::function<void(const JsonlLine&)>& take,
                     std::size_t max_line_bytes = std::size_t{64} << 20);

}  // namespace lockstep
