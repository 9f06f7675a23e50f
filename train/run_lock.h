#pragma once

#include <string>

namespace lockstep {

// The right to write to a run directory, held by one process at a time: an flock(2) on RUN/lock,
// which the kernel releases when its holder dies, so that a stale lock cannot be. The file says who
// holds it (host, pid, start).
class RunLock {
 public:
  // Throws kInput, naming the holder, when another process has it; kIo when the file cannot be
  // made.
  explicit RunLock(const std::string& run_directory);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace lockstep
