#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/file.h"

namespace lockstep {

// A file that appears under its name whole or not at all. Bytes go to `path`.tmp-<id>; commit()
// makes them durable and renames. Destroyed without commit(), the temporary file is removed.
// `fs` must outlive it. Not thread-safe.
class AtomicFile {
 public:
  AtomicFile(FileSystem& fs, std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void append(std::span<const std::byte> bytes) { file_->append(bytes); }
  void append(std::string_view text) { file_->append(text); }
  // sync, close, rename, sync of the directory. Once, last.
  void commit();
  // The final name.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  FileSystem& fs_;
  std::string path_;
  std::string temporary_;
  std::unique_ptr<OutputFile> file_;
  bool renamed_ = false;
};

}  // namespace lockstep
