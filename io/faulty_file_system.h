#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/file.h"

namespace lockstep {

// What a test sees in place of the process's death. Deliberately no lockstep::Error and no
// std::exception, so that no handler of ordinary errors swallows it.
struct ProcessKilled {
  std::uint64_t call;
};

enum class PowerCut {
  kDataLost,        // every name survives, unsynced contents do not: a rename overtook its data
  kEverythingLost,  // names that were not synced through their directory are undone as well
};

// A test double over another file system. Mutating calls (open_output, append, write_at, sync,
// close, rename, remove, truncate, create_directories, sync_directory) are counted from 1, so that
// a test can loop over every n until calls() stays below n:
//
//   for (std::uint64_t n = 1;; ++n) {
//     FaultyFileSystem fs(FileSystem::real());
//     fs.kill_at(n);
//     try { save(fs); } catch (const ProcessKilled&) {}
//     if (!fs.killed()) break;
//     fs.cut_power(PowerCut::kDataLost);  // optional
//     ... check with the real file system ...
//   }
//
// An append or write_at that fails or is killed leaves half of its bytes behind. Thread-safe.
class FaultyFileSystem : public FileSystem {
 public:
  // `under` must outlive it.
  explicit FaultyFileSystem(FileSystem& under);
  ~FaultyFileSystem() override;

  // Call n (counted from now on at 1 with the first call ever) throws kIo with errno's text;
  // later calls work.
  void fail_at(std::uint64_t n, int error_number);
  // Call n and every later one throw kIo: a disk that stays full.
  void fail_from(std::uint64_t n, int error_number);
  // Call n throws ProcessKilled, and so does every later mutating call.
  void kill_at(std::uint64_t n);
  // Undoes what a power cut would. Works on the underlying files, after a kill or at any time;
  // every later mutating call throws ProcessKilled.
  void cut_power(PowerCut what);

  [[nodiscard]] std::uint64_t calls() const;
  [[nodiscard]] bool killed() const;
  // One line per mutating call so far: "rename a b", to check orders such as fsync before rename.
  [[nodiscard]] std::vector<std::string> log() const;

  std::unique_ptr<InputFile> open_input(const std::string& path) override;
  std::unique_ptr<InputFile> open_input_in(const std::string& directory,
                                           const std::string& base_name) override;
  std::unique_ptr<OutputFile> open_output(const std::string& path, OpenMode mode) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void truncate(const std::string& path, std::uint64_t bytes) override;
  void create_directories(const std::string& path) override;
  FileKind kind(const std::string& path, FollowSymlinks follow) override;
  std::vector<std::string> list(const std::string& directory) override;
  std::uint64_t file_size(const std::string& path) override;
  void sync_directory(const std::string& directory) override;
  std::uint64_t free_space(const std::string& directory) override;

 private:
  class Output;
  class Disk;
  std::unique_ptr<Disk> disk_;
};

}  // namespace lockstep
