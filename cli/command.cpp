#include "cli/command.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/clock.h"

namespace lockstep::cli {
namespace {

// Writes all of it; a closed pipe ends the writing quietly (the reader has what it wanted). False
// then.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      return false;
    } else if (errno != EINTR) {
      if (fd == STDERR_FILENO) return true;
      fail(ErrorKind::kIo, "standard output: cannot write: ", std::strerror(errno));
    }
  }
  return true;
}

}  // namespace

void Context::say(std::string_view text) {
  end_progress();
  std::string line(text);
  if (line.empty() || line.back() != '\n') line += '\n';
  if (!write_all(json_ ? STDERR_FILENO : STDOUT_FILENO, line)) reader_gone_ = true;
}

void Context::result(const OrderedJson& document) {
  if (!json_) return;
  LOCKSTEP_CHECK(!std::exchange(printed_, true), "a second JSON document");
  write_all(STDOUT_FILENO,
            document.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
}

void Context::progress(std::string_view text) {
  if (isatty(STDERR_FILENO) == 1) {
    write_all(STDERR_FILENO, concat("\r\x1b[K", text));
    progress_shown_ = true;
    return;
  }
  constexpr std::int64_t kInterval = 10'000'000'000;
  const std::int64_t now = now_ns();
  if (last_progress_ns_ != 0 && now - last_progress_ns_ < kInterval) return;
  last_progress_ns_ = now;
  write_all(STDERR_FILENO, concat(text, "\n"));
}

void Context::end_progress() {
  if (std::exchange(progress_shown_, false)) write_all(STDERR_FILENO, "\n");
}

CLI::App* Context::add(CLI::App& parent, const std::string& name, const std::string& help,
                       std::function<int()> action) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_flag("--json", json_, "One JSON document on stdout, human text on stderr");
  command->callback([this, action = std::move(action)] { action_ = action; });
  return command;
}

int Context::run() {
  LOCKSTEP_CHECK(action_ != nullptr, "no command was chosen");
  const int code = action_();
  end_progress();
  return code;
}

}  // namespace lockstep::cli
