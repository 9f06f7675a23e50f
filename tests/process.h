#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep {

struct ProcessResult {
  int exit_code = -1;  // 128 + signal when it died of one
  std::string out;
  std::string err;
};

// A child that runs the lockstep binary of this build. Its output goes to files, so that it never
// waits for its parent.
class Process {
 public:
  // `directory` is where it runs and where its output is kept.
  Process(const std::string& directory, const std::vector<std::string>& arguments);
  ~Process();  // kills it when it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  [[nodiscard]] bool running();
  ProcessResult wait();

 private:
  pid_t pid_ = -1;
  bool reaped_ = false;
  int status_ = 0;
  std::string out_path_;
  std::string err_path_;
};

// Runs it to its end.
ProcessResult run_lockstep(const std::string& directory, const std::vector<std::string>& arguments);

}  // namespace lockstep
