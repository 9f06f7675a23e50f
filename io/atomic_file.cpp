#include "io/atomic_file.h"

#include <unistd.h>

#include <utility>

namespace lockstep {

AtomicFile::AtomicFile(FileSystem& fs, std::string path) : fs_(fs), path_(std::move(path)) {
  const auto stem = path_ + ".tmp-" + std::to_string(::getpid()) + "-";
  for (unsigned attempt = 0;; ++attempt) {
    temporary_ = stem + std::to_string(attempt);
    if (fs_.kind(temporary_, FollowSymlinks::kNo) == FileKind::kMissing) break;
  }
  file_ = fs_.open_output(temporary_, OpenMode::kCreateNew);
}

AtomicFile::~AtomicFile() {
  if (renamed_) return;
  file_.reset();
  try {
    fs_.remove(temporary_);
  } catch (...) {  // an error is under way already; readers ignore names with .tmp-
  }
}

void AtomicFile::commit() {
  file_->sync();
  file_->close();
  fs_.rename(temporary_, path_);
  renamed_ = true;
  fs_.sync_directory(parent_directory(path_));
}

}  // namespace lockstep
