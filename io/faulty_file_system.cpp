#include "io/faulty_file_system.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

std::string normal(const std::string& path) {
  auto text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool is_at_or_below(const std::string& path, const std::string& top) {
  return path == top || path.starts_with(top + "/");
}

std::string contents(FileSystem& fs, const std::string& path) {
  return read_file(fs, path, kNever);
}

void put(FileSystem& fs, const std::string& path, std::string_view text) {
  const auto file = fs.open_output(path, OpenMode::kTruncate);
  file->append(text);
  file->close();
}

}  // namespace

// The faults, and what a power cut would take back. Its members are called with the mutex held.
class FaultyFileSystem::Disk {
 public:
  explicit Disk(FileSystem& below) : under(below) {}

  // Counts a call. Throws when it is to fail; before that runs `partly`.
  template <class Partly>
  void enter(const std::string& what, const Partly& partly) {
    if (killed) throw ProcessKilled{calls};
    ++calls;
    log.push_back(what);
    if (calls == kill_call) {
      partly();
      killed = true;
      throw ProcessKilled{calls};
    }
    if (calls == fail_call || calls >= fail_from_call) {
      partly();
      fail(ErrorKind::kIo, "cannot ", printable(what), ": ",
           std::generic_category().message(error_number));
    }
  }
  void enter(const std::string& what) {
    enter(what, [] {});
  }

  void opened(const std::string& path, OpenMode mode, bool existed) {
    if (!existed) names.push_back({.kind = NameChange::kCreate, .path = path});
    if (mode == OpenMode::kTruncate || !existed) {
      unsynced[path] = {};
    } else if (!unsynced.contains(path)) {
      unsynced[path].synced_bytes = under.file_size(path);
    }
  }

  void overwriting(const std::string& path, std::uint64_t offset, std::uint64_t bytes) {
    auto& state = unsynced[path];
    if (offset >= state.synced_bytes) return;
    std::string old(std::min(bytes, state.synced_bytes - offset), '\0');
    under.open_input(path)->read_at(offset, std::as_writable_bytes(std::span(old)));
    state.overwritten.emplace_back(offset, std::move(old));
  }

  void synced(const std::string& path) { unsynced[path] = {under.file_size(path), {}}; }

  void rename(const std::string& from, const std::string& to) {
    NameChange change{.kind = NameChange::kRename, .path = to, .from = from};
    if (under.kind(to, FollowSymlinks::kNo) == FileKind::kRegular) {
      change.replaced = durable_contents(to);
    }
    under.rename(from, to);
    unsynced.erase(to);
    move_unsynced(from, to);
    names.push_back(std::move(change));
  }

  void remove(const std::string& path) {
    NameChange change{.kind = NameChange::kRemove, .path = path};
    const auto kind = under.kind(path, FollowSymlinks::kNo);
    if (kind == FileKind::kRegular) change.replaced = durable_contents(path);
    change.was_directory = kind == FileKind::kDirectory;
    under.remove(path);
    unsynced.erase(path);
    names.push_back(std::move(change));
  }

  void sync_directory(const std::string& directory) {
    for (std::size_t i = 0; i < names.size();) {
      if (parent_directory(names[i].path) != directory) {
        ++i;
        continue;
      }
      // What came before a rename that now stays is undone under the new name.
      if (names[i].kind == NameChange::kRename) {
        for (std::size_t j = 0; j < i; ++j) names[j].follow(names[i].from, names[i].path);
      }
      names.erase(names.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void lose_data() {
    for (const auto& [path, state] : unsynced) {
      if (under.kind(path, FollowSymlinks::kNo) != FileKind::kRegular) continue;
      put(under, path, durable_contents(path));
    }
    unsynced.clear();
  }

  void lose_names() {
    for (; !names.empty(); names.pop_back()) {
      const auto& change = names.back();
      const bool there = under.kind(change.path, FollowSymlinks::kNo) != FileKind::kMissing;
      if (change.kind == NameChange::kCreate && there) under.remove(change.path);
      if (change.kind == NameChange::kRename && there) under.rename(change.path, change.from);
      if (change.was_directory) under.create_directories(change.path);
      if (change.replaced) put(under, change.path, *change.replaced);
    }
  }

  FileSystem& under;
  mutable std::mutex mutex;
  std::uint64_t calls = 0;
  std::uint64_t fail_call = kNever;
  std::uint64_t fail_from_call = kNever;
  std::uint64_t kill_call = kNever;
  int error_number = 0;
  bool killed = false;
  std::vector<std::string> log;

 private:
  struct Unsynced {
    std::uint64_t synced_bytes = 0;
    std::vector<std::pair<std::uint64_t, std::string>> overwritten;  // offset, what was there
  };

  struct NameChange {
    enum Kind { kCreate, kRename, kRemove } kind = kCreate;
    std::string path;                          // after the change
    std::string from = {};                     // before a rename
    std::optional<std::string> replaced = {};  // contents of the file that the change took away
    bool was_directory = false;

    void follow(const std::string& old_top, const std::string& new_top) {
      for (auto* name : {&path, &from}) {
        if (is_at_or_below(*name, old_top)) *name = new_top + name->substr(old_top.size());
      }
    }
  };

  std::string durable_contents(const std::string& path) {
    auto text = contents(under, path);
    const auto found = unsynced.find(path);
    if (found == unsynced.end()) return text;
    const auto& state = found->second;
    text.resize(std::min<std::uint64_t>(text.size(), state.synced_bytes));
    for (auto i = state.overwritten.rbegin(); i != state.overwritten.rend(); ++i) {
      text.replace(i->first, i->second.size(), i->second);
    }
    return text;
  }

  void move_unsynced(const std::string& from, const std::string& to) {
    std::map<std::string, Unsynced> moved;
    for (auto& [path, state] : unsynced) {
      const bool moves = is_at_or_below(path, from);
      moved[moves ? to + path.substr(from.size()) : path] = std::move(state);
    }
    unsynced = std::move(moved);
  }

  std::map<std::string, Unsynced> unsynced;  // files with a handle or bytes not yet synced
  std::vector<NameChange> names;             // changes not yet durable, oldest first
};

class FaultyFileSystem::Output : public OutputFile {
 public:
  Output(std::string path, std::string name, Disk& disk, std::unique_ptr<OutputFile> under)
      : OutputFile(std::move(name)),
        path_(std::move(path)),
        disk_(disk),
        under_(std::move(under)) {}

  void append(std::span<const std::byte> bytes) override {
    const std::lock_guard lock(disk_.mutex);
    disk_.enter("append " + path_, [&] { under_->append(bytes.first(bytes.size() / 2)); });
    under_->append(bytes);
  }
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(disk_.mutex);
    const auto write = [&](std::span<const std::byte> part) {
      disk_.overwriting(path_, offset, part.size());
      under_->write_at(offset, part);
    };
    disk_.enter("write_at " + path_, [&] { write(bytes.first(bytes.size() / 2)); });
    write(bytes);
  }
  void sync() override {
    const std::lock_guard lock(disk_.mutex);
    disk_.enter("sync " + path_);
    under_->sync();
    disk_.synced(path_);
  }
  void close() override {
    const std::lock_guard lock(disk_.mutex);
    disk_.enter("close " + path_);
    under_->close();
  }

 private:
  std::string path_;
  Disk& disk_;
  std::unique_ptr<OutputFile> under_;
};

FaultyFileSystem::FaultyFileSystem(FileSystem& under) : disk_(std::make_unique<Disk>(under)) {}
FaultyFileSystem::~FaultyFileSystem() = default;

void FaultyFileSystem::fail_at(std::uint64_t n, int error_number) {
  const std::lock_guard lock(disk_->mutex);
  disk_->fail_call = n;
  disk_->error_number = error_number;
}

void FaultyFileSystem::fail_from(std::uint64_t n, int error_number) {
  const std::lock_guard lock(disk_->mutex);
  disk_->fail_from_call = n;
  disk_->error_number = error_number;
}

void FaultyFileSystem::kill_at(std::uint64_t n) {
  const std::lock_guard lock(disk_->mutex);
  disk_->kill_call = n;
}

void FaultyFileSystem::cut_power(PowerCut what) {
  const std::lock_guard lock(disk_->mutex);
  disk_->killed = true;
  disk_->lose_data();
  if (what == PowerCut::kEverythingLost) disk_->lose_names();
}

std::uint64_t FaultyFileSystem::calls() const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->calls;
}

bool FaultyFileSystem::killed() const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->killed;
}

std::vector<std::string> FaultyFileSystem::log() const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->log;
}

std::unique_ptr<InputFile> FaultyFileSystem::open_input(const std::string& path) {
  return disk_->under.open_input(path);
}

std::unique_ptr<InputFile> FaultyFileSystem::open_input_in(const std::string& directory,
                                                           const std::string& base_name) {
  return disk_->under.open_input_in(directory, base_name);
}

std::unique_ptr<OutputFile> FaultyFileSystem::open_output(const std::string& path, OpenMode mode) {
  const std::lock_guard lock(disk_->mutex);
  const auto name = normal(path);
  disk_->enter("open_output " + name);
  const bool existed = disk_->under.kind(name, FollowSymlinks::kNo) != FileKind::kMissing;
  auto file = disk_->under.open_output(path, mode);
  disk_->opened(name, mode, existed);
  return std::make_unique<Output>(name, path, *disk_, std::move(file));
}

void FaultyFileSystem::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(disk_->mutex);
  disk_->enter("rename " + normal(from) + " " + normal(to));
  disk_->rename(normal(from), normal(to));
}

void FaultyFileSystem::remove(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  disk_->enter("remove " + normal(path));
  disk_->remove(normal(path));
}

void FaultyFileSystem::truncate(const std::string& path, std::uint64_t bytes) {
  const std::lock_guard lock(disk_->mutex);
  disk_->enter("truncate " + normal(path));
  disk_->under.truncate(path, bytes);
  disk_->synced(normal(path));
}

void FaultyFileSystem::create_directories(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  disk_->enter("create_directories " + normal(path));
  disk_->under.create_directories(path);
}

FileKind FaultyFileSystem::kind(const std::string& path, FollowSymlinks follow) {
  return disk_->under.kind(path, follow);
}

std::vector<std::string> FaultyFileSystem::list(const std::string& directory) {
  return disk_->under.list(directory);
}

std::uint64_t FaultyFileSystem::file_size(const std::string& path) {
  return disk_->under.file_size(path);
}

void FaultyFileSystem::sync_directory(const std::string& directory) {
  const std::lock_guard lock(disk_->mutex);
  disk_->enter("sync_directory " + normal(directory));
  disk_->under.sync_directory(directory);
  disk_->sync_directory(normal(directory));
}

std::uint64_t FaultyFileSystem::free_space(const std::string& directory) {
  return disk_->under.free_space(directory);
}

}  // namespace lockstep
