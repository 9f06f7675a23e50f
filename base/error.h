#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace lockstep {

// Who must act on an error. Each kind has one process exit code (exit_code below).
enum class ErrorKind {
  kBug,        // 1: our fault
  kConfig,     // 2: the recipe or the command line is wrong
  kInput,      // 2: a file or value that the user gave cannot be used (missing, wrong format)
  kData,       // 3: data or a checkpoint is damaged
  kNumeric,    // 4: non-finite values, too many skipped steps
  kIo,         // 5: the system refused to read, write, allocate
  kDevice,     // 5: device or instruction set not available
  kComm,       // 5: a peer was lost
  kPreempted,  // 75: saved and stopped on request; run again to go on
};

// The process exit code of an error kind; the table is part of the command line's contract.
[[nodiscard]] int exit_code(ErrorKind kind);

// The one exception type. The text is one line: what is wrong, where (file, key, tensor, step),
// found against wanted, and what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// The parts streamed one after another into one string.
template <class... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// Throws Error(kind, concat(parts...)).
template <class... Parts>
[[noreturn]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, concat(parts...));
}

}  // namespace lockstep

// A promise of our own code, checked in every build. Throws kBug. The condition has no side
// effects.
#define LOCKSTEP_CHECK(condition, ...)                                                        \
  do {                                                                                        \
    if (!(condition))                                                                         \
      ::lockstep::fail(::lockstep::ErrorKind::kBug, __FILE__, ":", __LINE__, ": " #condition, \
                       ": ", ::lockstep::concat(__VA_ARGS__));                                \
  } while (false)
