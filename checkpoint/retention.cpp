#include "checkpoint/retention.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/paths.h"

namespace lockstep {
namespace {

// Only plain files, as checkpoints hold: nothing below a directory or behind a link is touched.
void remove_files(FileSystem& fs, const std::string& directory) {
  for (const auto& name : fs.list(directory)) fs.remove(join_path(directory, name));
  fs.remove(directory);
}

}  // namespace

std::vector<std::int64_t> removable_checkpoints(std::vector<std::int64_t> steps,
                                                const Retention& retention, std::int64_t in_use) {
  std::vector<std::int64_t> removable;
  if (retention.keep_last <= 0) return removable;
  std::sort(steps.begin(), steps.end());
  const auto count = static_cast<std::int64_t>(steps.size());
  for (std::int64_t i = 0; i < count - retention.keep_last; ++i) {
    const std::int64_t step = steps[static_cast<std::size_t>(i)];
    const bool kept_every = retention.keep_every > 0 && step % retention.keep_every == 0;
    const auto& named = retention.keep_steps;
    const bool kept_by_name = std::find(named.begin(), named.end(), step) != named.end();
    if (!kept_every && !kept_by_name && step != in_use) removable.push_back(step);
  }
  return removable;
}

std::vector<std::int64_t> apply_retention(FileSystem& fs, const std::string& checkpoints,
                                          const Retention& retention, std::int64_t in_use) {
  const auto removable =
      removable_checkpoints(list_checkpoints(fs, checkpoints), retention, in_use);
  for (const std::int64_t step : removable) {
    const std::string path = join_path(checkpoints, paths::checkpoint_name(step));
    fs.rename(path, path + ".tmp-remove");
    remove_files(fs, path + ".tmp-remove");
  }
  return removable;
}

std::vector<std::string> remove_unfinished(FileSystem& fs, const std::string& checkpoints) {
  std::vector<std::string> removed;
  if (!fs.is_directory(checkpoints)) return removed;
  for (const auto& name : fs.list(checkpoints)) {
    const std::string path = join_path(checkpoints, name);
    if (!paths::is_unfinished(name) || fs.kind(path, FollowSymlinks::kNo) != FileKind::kDirectory) {
      continue;
    }
    // A crash between the two renames of a replacement leaves the old one whole under its .tmp
    // name.
    const auto old = name.find(".tmp-old-");
    const std::string original = join_path(checkpoints, name.substr(0, old));
    if (old != std::string::npos && !fs.exists(original)) {
      fs.rename(path, original);
      fs.sync_directory(checkpoints);
      continue;
    }
    remove_files(fs, path);
    removed.push_back(name);
  }
  return removed;
}

}  // namespace lockstep
