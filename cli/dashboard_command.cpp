#include <pthread.h>
#include <sys/random.h>

#include <array>
#include <csignal>
#include <memory>

#include "base/text.h"
#include "cli/command.h"
#include "report/dashboard_server.h"

namespace lockstep::cli {
namespace {

struct DashboardCommand {
  std::string run;
  DashboardOptions options;
  bool allow_remote = false;
  std::string token_file;
};

constexpr std::uint64_t kMaxTokenBytes = 1024;

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    fail(ErrorKind::kIo, "dashboard: the system gave no random bytes for a token");
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    token += "0123456789abcdef"[byte >> 4U];
    token += "0123456789abcdef"[byte & 15U];
  }
  return token;
}

// Not an argument: other users see those.
std::string read_token(const std::string& path) {
  std::string token = read_file(FileSystem::real(), path, kMaxTokenBytes);
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  constexpr std::size_t kShortest = 16;
  if (token.size() < kShortest) {
    fail(ErrorKind::kInput, printable(path), ": a token of ", token.size(),
         " characters, at least ", kShortest, " are wanted");
  }
  return token;
}

void choose_token(DashboardCommand& command) {
  const bool loopback = is_loopback(command.options.address);
  if (!loopback && !command.allow_remote) {
    fail(ErrorKind::kConfig, "--address ", printable(command.options.address),
         ": others could read the run there; say --allow-remote to allow it, with a token");
  }
  if (!command.token_file.empty()) {
    command.options.token = read_token(command.token_file);
  } else if (!loopback) {
    command.options.token = random_token();
  }
}

int run_dashboard(Context& context, DashboardCommand command) {
  choose_token(command);
  FileSystem& fs = FileSystem::real();
  Dashboard dashboard(fs, load_evidence(fs, command.run));
  // Blocked before the server's threads begin, so that they come here and nowhere else.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  DashboardServer server(dashboard, command.options);
  const bool six = command.options.address.find(':') != std::string::npos;
  std::string url = concat("http://", six ? "[" : "", command.options.address, six ? "]" : "", ":",
                           server.port(), "/");
  if (command.token_file.empty() && !command.options.token.empty()) {
    url += "?token=" + command.options.token;
  }
  context.say("serving ", printable(command.run), " at ", url, " (Ctrl-C ends it)");
  int signal = 0;
  sigwait(&signals, &signal);
  server.stop();
  context.say("ended by signal ", signal);
  context.result({{"url", url}, {"signal", signal}});
  return 0;
}

}  // namespace

void add_dashboard_command(CLI::App& app, Context& context) {
  const auto command = std::make_shared<DashboardCommand>();
  command->options.port = 8730;
  CLI::App* sub = context.add(app, "dashboard", "Serves a run's report live on this machine",
                              [&context, command] { return run_dashboard(context, *command); });
  sub->add_option("RUN", command->run, "A run directory")->required();
  sub->add_option("--port", command->options.port, "0: any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  sub->add_option("--address", command->options.address, "Where to listen")->capture_default_str();
  sub->add_flag("--allow-remote", command->allow_remote,
                "Allows an address that other machines reach; a token is then asked for");
  sub->add_option("--token-file", command->token_file,
                  "A file with the token; default: a new one, printed at start, when remote");
  sub->add_option("--host-name", command->options.host_names,
                  "A name that browsers may know this machine by");
}

}  // namespace lockstep::cli
