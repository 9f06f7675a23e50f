#pragma once

#include <memory>
#include <string>
#include <vector>

#include "report/dashboard.h"

namespace lockstep {

struct DashboardOptions {
  std::string address = "127.0.0.1";
  int port = 0;  // 0: any that is free
  // Asked of every request ("Authorization: Bearer TOKEN" or ?token=TOKEN); empty: of none, which
  // only a loopback address allows.
  std::string token = {};
  // Names besides the address that a Host header may have.
  std::vector<std::string> host_names = {};
  int request_ms = 5000;  // to send a whole request head in
  int answer_ms = 15000;  // to take a whole answer in
};

// Serves a dashboard over HTTP: GET and HEAD of "/" and "/data.json", nothing else; no file is ever
// named by a request. Refused: other methods (405), other paths (404), a Host header that is not
// the address or one of the names (beyond loopback: nor any address; 403, against DNS rebinding), a
// missing or wrong token (401), request heads over 8 KiB (431) or not there in time (408). One
// request a connection; four are answered at once, others wait. No cross-origin header is sent.
class DashboardServer {
 public:
  // Binds and listens. kConfig when the port is in use or may not be had, the address is not the
  // machine's, or it is not a loopback address and there is no token. `dashboard` must outlive it.
  DashboardServer(Dashboard& dashboard, const DashboardOptions& options);
  ~DashboardServer();
  DashboardServer(const DashboardServer&) = delete;
  DashboardServer& operator=(const DashboardServer&) = delete;

  [[nodiscard]] int port() const;
  // Ends the serving; requests that are being answered are finished first.
  void stop();

 private:
  class State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] bool is_loopback(const std::string& address);

}  // namespace lockstep
