#include "tests/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace lockstep {
namespace {

std::string slurp(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

Process::Process(const std::string& directory, const std::vector<std::string>& arguments) {
  static std::atomic<int> serial{0};
  const int id = serial++;
  out_path_ = concat(directory, "/process-", id, ".out");
  err_path_ = concat(directory, "/process-", id, ".err");
  std::vector<const char*> argv = {LOCKSTEP_BINARY_DIR "/lockstep"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  argv.push_back(nullptr);
  pid_ = fork();
  LOCKSTEP_CHECK(pid_ >= 0, "fork");
  if (pid_ != 0) return;
  const int out = open(out_path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  const int err = open(err_path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  const int in = open("/dev/null", O_RDONLY);
  if (chdir(directory.c_str()) != 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) {
    _exit(126);
  }
  execv(argv[0], const_cast<char* const*>(argv.data()));
  _exit(127);
}

Process::~Process() {
  if (reaped_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, &status_, 0);
}

void Process::signal(int number) const { kill(pid_, number); }

bool Process::running() {
  if (!reaped_ && waitpid(pid_, &status_, WNOHANG) == pid_) reaped_ = true;
  return !reaped_;
}

ProcessResult Process::wait() {
  if (!reaped_) waitpid(pid_, &status_, 0);
  reaped_ = true;
  return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), slurp(out_path_),
          slurp(err_path_)};
}

ProcessResult run_lockstep(const std::string& directory,
                           const std::vector<std::string>& arguments) {
  return Process(directory, arguments).wait();
}

}  // namespace lockstep
