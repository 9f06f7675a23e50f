#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "tensor/buffer.h"

namespace lockstep {

// Writes checkpoints on a thread of its own. The caller pays for the copy of the tensors only; the
// copy is of exactly the step that was handed over. One save at a time: the next one waits for it.
// `fs` must outlive it. Used by one thread.
class AsyncSaver {
 public:
  // After a checkpoint is durable: its step, and when (monotonic clock) writing it began.
  using Saved = std::function<void(std::int64_t step, std::int64_t began_ns)>;

  // `staging` takes the copy: at least the bytes of all tensors of a checkpoint, moments included.
  // `saved` runs on the saver's thread after a checkpoint is durable (retention, say).
  AsyncSaver(FileSystem& fs, std::string checkpoints, Buffer staging, Saved saved);
  ~AsyncSaver();  // waits; an error not yet seen is lost, so call finish() first
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;

  // Copies the tensors and returns; waits first while the one before is still being written.
  // Throws what went wrong with the one before.
  void save(ThreadPool& pool, CheckpointContents contents);
  // Throws what went wrong since the last call, once. Cheap; call it every step.
  void check();
  // Waits for the save in progress; throws what went wrong.
  void finish();
  // The seconds that callers have waited for earlier saves, in all.
  [[nodiscard]] double waited_seconds() const { return waited_seconds_; }

 private:
  void work();
  void rethrow(std::unique_lock<std::mutex>& lock);

  FileSystem& fs_;
  std::string checkpoints_;
  Saved saved_;
  Buffer staging_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<CheckpointContents> pending_;  // being written until it is empty again
  std::optional<Error> error_;
  bool stop_ = false;
  double waited_seconds_ = 0;
  std::thread thread_;
};

}  // namespace lockstep
