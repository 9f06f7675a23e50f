#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The one layer through which every persistent byte passes, so that tests can make any call fail,
// stop the process at any call, or lose what was not synced (io/faulty_file_system.h).
//
// Errors, everywhere in this folder: kInput for a path that does not exist or is not the kind of
// file wanted; kData for contents that are damaged; kIo for what the system refused, with the path
// and the text of errno. EINTR and short transfers are retried and never seen by callers.
// Paths are UTF-8 or any other bytes without NUL; std::filesystem::path converts.
namespace lockstep {

// A regular file open for reading. All members may be called from many threads at once.
class InputFile {
 public:
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  virtual ~InputFile() = default;

  [[nodiscard]] const std::string& name() const { return name_; }
  // Bytes when it was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Fills `out` from byte `offset`. kData when the file ends before (it shrank, or the caller asked
  // past the end): found and wanted are in the text.
  virtual void read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;

 protected:
  InputFile(std::string name, std::uint64_t size) : name_(std::move(name)), size_(size) {}

 private:
  std::string name_;
  std::uint64_t size_;
};

// A file open for writing; not buffered, so make the pieces large. Not thread-safe, except that
// write_at calls on disjoint ranges may run at once. The destructor closes without syncing and
// without reporting: a file that matters is sync()ed and close()d.
class OutputFile {
 public:
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  virtual ~OutputFile() = default;

  [[nodiscard]] const std::string& name() const { return name_; }
  // After an error the file may hold any prefix of `bytes`.
  virtual void append(std::span<const std::byte> bytes) = 0;
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  // Overwrites, or extends the file. Not on files opened with kAppend (kBug).
  virtual void write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Returns when the bytes are on stable storage (fsync). The name is durable only after
  // FileSystem::sync_directory of the parent.
  virtual void sync() = 0;
  // Reports what the system says at close. Only once; nothing else may follow.
  virtual void close() = 0;

 protected:
  explicit OutputFile(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

enum class OpenMode {
  kCreateNew,  // kIo when the file exists
  kTruncate,   // creates, or empties
  kAppend,     // creates, or keeps; every append goes to the end, as one write(2) where possible
};

enum class FileKind { kMissing, kRegular, kDirectory, kSymlink, kOther };
enum class FollowSymlinks { kNo, kYes };

// All members may be called from many threads at once.
class FileSystem {
 public:
  FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;
  virtual ~FileSystem() = default;

  // The machine's own.
  [[nodiscard]] static FileSystem& real();

  // kInput when missing, a directory, a FIFO, a socket or a device (never blocks on one).
  [[nodiscard]] virtual std::unique_ptr<InputFile> open_input(const std::string& path) = 0;
  // The file `base_name` of `directory`, for names that come from a file's contents: kData unless
  // it is a plain name ("a/b", "..", "", NUL, a leading "/" or a "\" are refused), kInput when it
  // is a symbolic link.
  [[nodiscard]] virtual std::unique_ptr<InputFile> open_input_in(const std::string& directory,
                                                                 const std::string& base_name) = 0;
  // kInput when `path` exists and is not a regular file.
  [[nodiscard]] virtual std::unique_ptr<OutputFile> open_output(const std::string& path,
                                                                OpenMode mode) = 0;
  // Replaces `to` when it is a file. Atomic; durable after sync_directory of the parent.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // A file, a symbolic link (not what it points to) or an empty directory; kInput when missing.
  virtual void remove(const std::string& path) = 0;
  // Shortens a file to `bytes` and syncs it; kBug when it is shorter already.
  virtual void truncate(const std::string& path, std::uint64_t bytes) = 0;
  // With parents; nothing to do when it is there already. New names are durable on return.
  virtual void create_directories(const std::string& path) = 0;
  [[nodiscard]] virtual FileKind kind(const std::string& path, FollowSymlinks follow) = 0;
  // Names (not paths) in a directory, sorted by bytes, without "." and "..".
  [[nodiscard]] virtual std::vector<std::string> list(const std::string& directory) = 0;
  [[nodiscard]] virtual std::uint64_t file_size(const std::string& path) = 0;
  // Makes the names in `directory` durable.
  virtual void sync_directory(const std::string& directory) = 0;
  // Bytes that this user may still write on the file system that holds `directory`.
  [[nodiscard]] virtual std::uint64_t free_space(const std::string& directory) = 0;

  [[nodiscard]] bool exists(const std::string& path) {
    return kind(path, FollowSymlinks::kYes) != FileKind::kMissing;
  }
  [[nodiscard]] bool is_directory(const std::string& path) {
    return kind(path, FollowSymlinks::kYes) == FileKind::kDirectory;
  }
};

// Removes `directory` and all it holds, never following a symbolic link. Guard: `directory` must be
// a real directory strictly below `root`, and `root` must hold a regular file `marker` (a run's
// recipe.toml, say), else kBug and nothing is touched. Not atomic: rename to a temporary name first
// when a half-removed directory could be mistaken for a whole one.
void remove_tree(FileSystem& fs, const std::string& directory, const std::string& root,
                 const std::string& marker);

// The whole file; kInput when it is longer than `max_bytes`.
[[nodiscard]] std::string read_file(FileSystem& fs, const std::string& path,
                                    std::uint64_t max_bytes);

// Readers see the old file or the whole new one, and after return the new one survives a power cut:
// temporary file in the same directory, fsync, rename, fsync of the directory. On an error the old
// file is untouched and the temporary one removed (when only the last fsync failed, the new file is
// in place but might not survive a power cut). io/atomic_file.h is the streaming form.
void write_file_atomic(FileSystem& fs, const std::string& path, std::span<const std::byte> bytes);
void write_file_atomic(FileSystem& fs, const std::string& path, std::string_view text);

// "a/b" of "a/b/c"; "." of "c"; "/" of "/c".
[[nodiscard]] std::string parent_directory(const std::string& path);
// "dir/name"; `name` alone when dir is empty.
[[nodiscard]] std::string join_path(const std::string& directory, const std::string& name);

}  // namespace lockstep
