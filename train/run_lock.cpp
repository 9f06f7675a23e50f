#include "train/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/paths.h"
#include "io/file.h"
#include "train/event_log.h"

namespace lockstep {
namespace {

std::string holder_text() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return concat("host ", host.data(), ", pid ", getpid(), ", since ", utc_now());
}

}  // namespace

RunLock::RunLock(const std::string& run_directory) {
  const std::string path = join_path(run_directory, paths::kLock);
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) {
    fail(ErrorKind::kIo, printable(path), ": cannot open: ", std::strerror(errno));
  }
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    std::array<char, 512> text{};
    const ssize_t length = pread(fd_, text.data(), text.size() - 1, 0);
    close(fd_);
    if (error != EWOULDBLOCK) {
      fail(ErrorKind::kIo, printable(path), ": cannot lock: ", std::strerror(error));
    }
    fail(ErrorKind::kInput, printable(run_directory), ": another process is training this run (",
         length > 0 ? printable(text.data()) : "unknown",
         "); wait for it, stop it, or use another run.dir");
  }
  const std::string text = holder_text();
  if (ftruncate(fd_, 0) != 0 || pwrite(fd_, text.data(), text.size(), 0) < 0) {
    const int error = errno;
    close(fd_);
    fail(ErrorKind::kIo, printable(path), ": cannot write: ", std::strerror(error));
  }
}

RunLock::~RunLock() { close(fd_); }

}  // namespace lockstep
