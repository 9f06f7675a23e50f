#include "train/stop_request.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::array kSignals = {SIGTERM, SIGINT, SIGHUP};
constexpr int kSecondSignalExit = 75;  // the table's "preempted": run again to go on

std::atomic<int> received{0};
std::atomic<bool> installed{false};
std::array<struct sigaction, kSignals.size()> previous;

void handle(int number) {
  if (received.exchange(number) != 0) _exit(kSecondSignalExit);
}

}  // namespace

StopRequest::StopRequest() {
  LOCKSTEP_CHECK(!installed.exchange(true), "two stop requests at once");
  received = 0;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &previous[i]);
}

StopRequest::~StopRequest() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
  installed = false;
}

int StopRequest::signal() const { return received; }

}  // namespace lockstep
