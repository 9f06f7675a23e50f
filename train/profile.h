#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "io/file.h"
#include "tensor/trace.h"
#include "train/recipe.h"

namespace lockstep {

// The steps of [profile] as a timeline: DIRECTORY/profile.json in the Trace Event Format, which
// chrome://tracing and Perfetto open. One row for ops, one for what the run does (steps, snapshots,
// evaluation), one for waiting for the loader, one for the thread that writes checkpoints. Reading
// clocks changes no bit of the run. Spans may be added from several threads.
class Profile {
 public:
  enum class Row { kRun = 1, kOps = 2, kLoader = 3, kSaver = 4 };

  Profile(const ProfileConfig& config, std::string directory);

  // Whether the step, from 1, is one of those asked for.
  [[nodiscard]] bool covers(std::int64_t step) const {
    return first_step_ > 0 && step >= first_step_ && step <= last_step_;
  }
  // Called before a step; spans are kept from the first one covered on until write().
  void begin(std::int64_t step);
  [[nodiscard]] bool active() const { return active_; }
  // Where the stream records ops; null while nothing is to be kept.
  [[nodiscard]] Trace* ops() { return active_ ? &ops_ : nullptr; }
  // Dropped while not active. name: what is timed, such as "checkpoint snapshot".
  void add(Row row, const std::string& name, std::int64_t begin_ns, std::int64_t end_ns);
  // Writes the file and stops; call when no other thread adds. kIo from the file system.
  void write(FileSystem& fs);

 private:
  struct Span {
    Row row;
    std::string name;
    std::int64_t begin_ns;
    std::int64_t end_ns;
  };

  std::int64_t first_step_;
  std::int64_t last_step_;
  std::string path_;
  std::atomic<bool> active_ = false;
  Trace ops_;
  std::mutex mutex_;
  std::vector<Span> spans_;
};

// A span of a profile for as long as it lives.
class ProfileSpan {
 public:
  ProfileSpan(Profile& profile, Profile::Row row, std::string name)
      : profile_(profile), row_(row), name_(std::move(name)), begin_ns_(now_ns()) {}
  ~ProfileSpan() { profile_.add(row_, name_, begin_ns_, now_ns()); }
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;

 private:
  Profile& profile_;
  Profile::Row row_;
  std::string name_;
  std::int64_t begin_ns_;
};

}  // namespace lockstep
