#include "data/token_file_pool.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {

TokenFilePool::TokenFilePool(FileSystem& fs, const DataIndex& index, std::size_t open_files)
    : fs_(fs), index_(index), limit_(open_files), slots_(index.files().size()) {
  LOCKSTEP_CHECK(open_files >= 1, "open_files ", open_files);
}

std::shared_ptr<const TokenFile> TokenFilePool::file(std::size_t i) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_.at(i);
  slot.last_use = ++uses_;
  if (!slot.file) {
    auto opened = std::make_shared<const TokenFile>(fs_, index_.full_path(i), index_.spec().width,
                                                    index_.files()[i].tokens);
    if (open_.size() == limit_) evict_one();
    slot.file = std::move(opened);
    open_.push_back(i);
  }
  return slot.file;
}

void TokenFilePool::evict_one() {
  const auto oldest = std::min_element(
      open_.begin(), open_.end(),
      [&](std::size_t a, std::size_t b) { return slots_[a].last_use < slots_[b].last_use; });
  slots_[*oldest].file.reset();
  *oldest = open_.back();
  open_.pop_back();
}

}  // namespace lockstep
