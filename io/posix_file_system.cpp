#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "io/file.h"

namespace lockstep {
namespace {

// One write(2) transfers at most 0x7ffff000 bytes on Linux.
constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;

[[noreturn]] void fail_errno(ErrorKind kind, std::string_view doing, std::string_view path,
                             int error_number) {
  const char* hint = "";
  if (error_number == ENOSPC || error_number == EDQUOT) {
    hint = "; free some space or choose another directory";
  } else if (error_number == EACCES || error_number == EPERM || error_number == EROFS) {
    hint = "; check the permissions of the file and its directory";
  }
  fail(kind, "cannot ", doing, " ", printable(path), ": ",
       std::generic_category().message(error_number), hint);
}

// Why an input could not be found is the user's to mend; the rest is the system's refusal.
ErrorKind kind_of_missing(int error_number) {
  const bool missing =
      error_number == ENOENT || error_number == ENOTDIR || error_number == ENAMETOOLONG;
  return missing ? ErrorKind::kInput : ErrorKind::kIo;
}

const char* usable(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    fail(ErrorKind::kInput, "path ", printable(path), " holds a NUL byte");
  }
  return path.c_str();
}

template <class Call>
auto retry_interrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

const char* what_it_is(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISLNK(mode)) return "a symbolic link";
  return "of an unknown kind";
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// The size of the regular file that `fd` is; fails when it is something else.
std::uint64_t require_regular(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail_errno(ErrorKind::kIo, "examine", path, errno);
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorKind::kInput, printable(path), " is ", what_it_is(status.st_mode),
         ", but a regular file is wanted");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

class PosixInput : public InputFile {
 public:
  PosixInput(const std::string& name, std::uint64_t size, int fd)
      : InputFile(name, size), fd_(fd) {}

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size() || out.size() > size() - offset) fail_short(offset, out.size(), size());
    std::size_t done = 0;
    while (done < out.size()) {
      const auto got = retry_interrupted([&] {
        return ::pread(fd_.get(), out.data() + done, std::min(out.size() - done, kMaxTransfer),
                       static_cast<off_t>(offset + done));
      });
      if (got < 0) fail_errno(ErrorKind::kIo, "read", name(), errno);
      if (got == 0) fail_short(offset, out.size(), offset + done);
      done += static_cast<std::size_t>(got);
    }
  }

 private:
  [[noreturn]] void fail_short(std::uint64_t offset, std::uint64_t wanted,
                               std::uint64_t end) const {
    fail(ErrorKind::kData, printable(name()), " ends at byte ", end, ", but ", wanted,
         " bytes from byte ", offset, " on are wanted; it had ", size(), " when it was opened");
  }

  Descriptor fd_;
};

class PosixOutput : public OutputFile {
 public:
  PosixOutput(const std::string& name, int fd, bool appends)
      : OutputFile(name), fd_(fd), appends_(appends) {}

  void append(std::span<const std::byte> bytes) override {
    transfer(bytes, [&](std::span<const std::byte> rest, std::size_t) {
      return ::write(descriptor(), rest.data(), rest.size());
    });
  }

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    LOCKSTEP_CHECK(!appends_, name(), " was opened for appending");
    transfer(bytes, [&](std::span<const std::byte> rest, std::size_t done) {
      return ::pwrite(descriptor(), rest.data(), rest.size(), static_cast<off_t>(offset + done));
    });
  }

  void sync() override {
    if (retry_interrupted([&] { return ::fsync(descriptor()); }) != 0) {
      fail_errno(ErrorKind::kIo, "sync", name(), errno);
    }
  }

  void close() override {
    const int fd = descriptor();
    (void)fd_.release();
    // Linux has closed the descriptor even when it reports EINTR.
    if (::close(fd) != 0 && errno != EINTR) fail_errno(ErrorKind::kIo, "close", name(), errno);
  }

 private:
  [[nodiscard]] int descriptor() const {
    LOCKSTEP_CHECK(fd_.get() >= 0, name(), " is closed");
    return fd_.get();
  }

  template <class Write>
  void transfer(std::span<const std::byte> bytes, const Write& write) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const auto rest = bytes.subspan(done, std::min(bytes.size() - done, kMaxTransfer));
      const auto put = retry_interrupted([&] { return write(rest, done); });
      if (put < 0) fail_errno(ErrorKind::kIo, "write", name(), errno);
      if (put == 0) fail_errno(ErrorKind::kIo, "write", name(), EIO);
      done += static_cast<std::size_t>(put);
    }
  }

  Descriptor fd_;
  bool appends_;
};

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

class PosixFileSystem : public FileSystem {
 public:
  std::unique_ptr<InputFile> open_input(const std::string& path) override {
    // Without O_NONBLOCK, opening a FIFO would wait for its writer.
    Descriptor fd(retry_interrupted(
        [&] { return ::open(usable(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
    if (fd.get() < 0) fail_errno(kind_of_missing(errno), "open", path, errno);
    const auto size = require_regular(fd.get(), path);
    return std::make_unique<PosixInput>(path, size, fd.release());
  }

  std::unique_ptr<InputFile> open_input_in(const std::string& directory,
                                           const std::string& base_name) override {
    if (!is_plain_name(base_name)) {
      fail(ErrorKind::kData, "file name \"", printable(base_name), "\" (in ", printable(directory),
           ") is not a plain name; a path is never taken from a file's contents");
    }
    const Descriptor parent(retry_interrupted(
        [&] { return ::open(usable(directory), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (parent.get() < 0) fail_errno(kind_of_missing(errno), "open", directory, errno);
    const auto path = join_path(directory, base_name);
    constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    Descriptor fd(
        retry_interrupted([&] { return ::openat(parent.get(), base_name.c_str(), kFlags); }));
    if (fd.get() < 0 && errno == ELOOP) {
      fail(ErrorKind::kInput, printable(path),
           " is a symbolic link; put a copy of the file there (cp -L)");
    }
    if (fd.get() < 0) fail_errno(kind_of_missing(errno), "open", path, errno);
    const auto size = require_regular(fd.get(), path);
    return std::make_unique<PosixInput>(path, size, fd.release());
  }

  std::unique_ptr<OutputFile> open_output(const std::string& path, OpenMode mode) override {
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    if (mode == OpenMode::kCreateNew) flags |= O_EXCL;
    if (mode == OpenMode::kTruncate) flags |= O_TRUNC;
    if (mode == OpenMode::kAppend) flags |= O_APPEND;
    Descriptor fd(retry_interrupted([&] { return ::open(usable(path), flags, 0666); }));
    if (fd.get() < 0) {
      const int reason = errno;
      // EISDIR: a directory; ENXIO: a FIFO without a reader or a socket.
      const bool wrong_kind = reason == EISDIR || reason == ENXIO || reason == ENAMETOOLONG;
      fail_errno(wrong_kind ? ErrorKind::kInput : ErrorKind::kIo, "create", path, reason);
    }
    (void)require_regular(fd.get(), path);
    return std::make_unique<PosixOutput>(path, fd.release(), mode == OpenMode::kAppend);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(usable(from), usable(to)) != 0) {
      const int reason = errno;
      fail_errno(ErrorKind::kIo, concat("rename ", printable(from), " to"), to, reason);
    }
  }

  void remove(const std::string& path) override {
    if (std::remove(usable(path)) != 0) {
      fail_errno(kind_of_missing(errno), "remove", path, errno);
    }
  }

  void truncate(const std::string& path, std::uint64_t bytes) override {
    const Descriptor fd(retry_interrupted(
        [&] { return ::open(usable(path), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
    if (fd.get() < 0) fail_errno(kind_of_missing(errno), "open", path, errno);
    const auto size = require_regular(fd.get(), path);
    LOCKSTEP_CHECK(bytes <= size, path, " has only ", size, " bytes, cannot be cut to ", bytes);
    const auto length = static_cast<off_t>(bytes);
    if (retry_interrupted([&] { return ::ftruncate(fd.get(), length); }) != 0 ||
        retry_interrupted([&] { return ::fsync(fd.get()); }) != 0) {
      fail_errno(ErrorKind::kIo, "truncate", path, errno);
    }
  }

  void create_directories(const std::string& path) override {
    const auto found = kind(path, FollowSymlinks::kYes);
    if (found == FileKind::kDirectory) return;
    if (found != FileKind::kMissing) {
      fail(ErrorKind::kInput, printable(path), " exists and is not a directory");
    }
    const auto parent = parent_directory(path);
    if (parent != path) create_directories(parent);
    // A name such as "a/." or "a/" may have come into being with its parent.
    if (::mkdir(usable(path), 0777) != 0 && !(errno == EEXIST && is_directory(path))) {
      fail_errno(ErrorKind::kIo, "create directory", path, errno);
    }
    sync_directory(parent);
  }

  FileKind kind(const std::string& path, FollowSymlinks follow) override {
    struct stat status {};
    const int result = follow == FollowSymlinks::kYes ? ::stat(usable(path), &status)
                                                      : ::lstat(usable(path), &status);
    if (result != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return FileKind::kMissing;
      fail_errno(kind_of_missing(errno), "examine", path, errno);
    }
    if (S_ISREG(status.st_mode)) return FileKind::kRegular;
    if (S_ISDIR(status.st_mode)) return FileKind::kDirectory;
    if (S_ISLNK(status.st_mode)) return FileKind::kSymlink;
    return FileKind::kOther;
  }

  std::vector<std::string> list(const std::string& directory) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(usable(directory)), ::closedir);
    if (!stream) fail_errno(kind_of_missing(errno), "list", directory, errno);
    std::vector<std::string> names;
    errno = 0;
    while (const auto* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): own DIR
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    if (errno != 0) fail_errno(ErrorKind::kIo, "list", directory, errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  std::uint64_t file_size(const std::string& path) override { return open_input(path)->size(); }

  void sync_directory(const std::string& directory) override {
    const Descriptor fd(retry_interrupted(
        [&] { return ::open(usable(directory), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (fd.get() < 0 || retry_interrupted([&] { return ::fsync(fd.get()); }) != 0) {
      fail_errno(ErrorKind::kIo, "sync directory", directory, errno);
    }
  }

  std::uint64_t free_space(const std::string& directory) override {
    struct statvfs status {};
    if (retry_interrupted([&] { return ::statvfs(usable(directory), &status); }) != 0) {
      fail_errno(kind_of_missing(errno), "examine", directory, errno);
    }
    return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
  }
};

}  // namespace

FileSystem& FileSystem::real() {
  static PosixFileSystem instance;
  return instance;
}

}  // namespace lockstep
