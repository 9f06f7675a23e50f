#include "report/dashboard_server.h"

// The only file that sees the HTTP library: its header is large.
#include <arpa/inet.h>
#include <httplib.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kLongestHead = 8192;
constexpr std::size_t kThreads = 4;
constexpr std::size_t kMostWaiting = 32;
constexpr const char* kText = "text/plain; charset=utf-8";

// Accepted connections for a fixed number of threads; the accepting thread waits when too many are
// waiting already.
class BoundedQueue : public httplib::TaskQueue {
 public:
  BoundedQueue() {
    for (std::size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
  }
  void enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tasks_.size() < kMostWaiting; });
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

 private:
  void work() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      changed_.notify_all();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// One connection, with limits on the whole of what it sends and takes, which the library's own
// stream does not have: its time-outs begin anew with every byte.
class BoundedStream : public httplib::Stream {
 public:
  BoundedStream(int socket, const DashboardOptions& options)
      : socket_(socket), options_(options), deadline_ns_(deadline(options.request_ms)) {}

  // Reads up to the empty line that ends the head. 0, or the status to refuse with; -1 when there
  // is nobody to answer.
  int read_head() {
    while (head_.find("\r\n\r\n") == std::string::npos) {
      if (head_.size() >= kLongestHead) return 431;
      if (!wait(POLLIN)) return 408;
      char part[1024];
      const ssize_t got =
          recv(socket_, part, std::min(sizeof part, kLongestHead - head_.size()), 0);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) return -1;
      head_.append(part, static_cast<std::size_t>(got));
    }
    return 0;
  }
  // From now on the time for the answer runs.
  void begin_answer() { deadline_ns_ = deadline(options_.answer_ms); }

  [[nodiscard]] bool is_readable() const override { return read_ < head_.size(); }
  [[nodiscard]] bool is_writable() const override { return true; }
  // Only of the head: bodies are not read.
  ssize_t read(char* out, std::size_t size) override {
    const std::size_t part = std::min(size, head_.size() - read_);
    std::memcpy(out, head_.data() + read_, part);
    read_ += part;
    return static_cast<ssize_t>(part);
  }
  ssize_t write(const char* bytes, std::size_t size) override {
    while (wait(POLLOUT)) {
      const ssize_t sent = send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) return sent;
      if (errno != EINTR && errno != EAGAIN) return -1;
    }
    return -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  static std::int64_t deadline(int ms) { return now_ns() + std::int64_t{1'000'000} * ms; }
  // False when the time is up.
  bool wait(short event) const {
    while (true) {
      const std::int64_t left_ms = (deadline_ns_ - now_ns()) / 1'000'000;
      if (left_ms <= 0) return false;
      pollfd waiting{.fd = socket_, .events = event, .revents = 0};
      const int ready = poll(&waiting, 1, static_cast<int>(left_ms));
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
  }

  int socket_;
  const DashboardOptions& options_;
  std::int64_t deadline_ns_;
  std::string head_;
  std::size_t read_ = 0;
};

// As long as the longer one takes, wherever they differ.
bool equal_in_constant_time(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ (i < b.size() ? b[i] : 0));
  }
  return difference == 0;
}

std::int64_t integer_of(const httplib::Request& request, const char* name) {
  std::int64_t value = -1;
  const std::string text = request.get_param_value(name);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

bool is_loopback(const std::string& address) {
  if (address == "localhost" || address == "::1") return true;
  in_addr parsed{};
  return inet_pton(AF_INET, address.c_str(), &parsed) == 1 && ntohl(parsed.s_addr) >> 24U == 127;
}

class DashboardServer::State : public httplib::Server {
 public:
  State(Dashboard& dashboard, const DashboardOptions& options)
      : dashboard_(dashboard), options_(options) {
    new_task_queue = [] { return new BoundedQueue; };
    // The library's own choice would let two dashboards share a port.
    set_socket_options([](socket_t socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
      return HandlerResponse::Handled;
    });
    bind();
    thread_ = std::thread([this] { listen_after_bind(); });
    while (!is_running()) std::this_thread::yield();
  }
  ~State() override { end(); }

  [[nodiscard]] int port() const { return port_; }
  void end() {
    stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void bind() {
    errno = 0;
    port_ = options_.port == 0
                ? bind_to_any_port(options_.address)
                : (bind_to_port(options_.address, options_.port) ? options_.port : -1);
    if (port_ > 0) return;
    const int code = errno;
    const std::string where = concat(printable(options_.address), ":", options_.port);
    if (code == EADDRINUSE) {
      fail(ErrorKind::kConfig, where,
           ": the port is in use; choose another with --port, 0 for any");
    }
    fail(ErrorKind::kConfig, where,
         ": cannot listen there: ", code == 0 ? "no such address" : std::strerror(code));
  }

  bool process_and_close_socket(socket_t socket) override {
    BoundedStream stream(socket, options_);
    const int refused = stream.read_head();
    stream.begin_answer();
    bool closed = false;
    bool done = false;
    if (refused == 0) {
      done = process_request(stream, true, closed, [](httplib::Request& request) {
        request.headers.erase("Accept-Encoding");  // packing costs more than loopback
      });
    } else if (refused > 0) {
      const std::string text =
          concat("HTTP/1.1 ", refused, refused == 408 ? " Request Timeout" : " Head Too Large",
                 "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      stream.httplib::Stream::write(text);
    }
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return done;
  }

  // A name can be made to point here by whoever owns it; an address cannot.
  [[nodiscard]] bool is_address_here(std::string host) const {
    const std::string port = concat(":", port_);
    if (!host.ends_with(port)) return false;
    host.resize(host.size() - port.size());
    in_addr four{};
    in6_addr six{};
    if (inet_pton(AF_INET, host.c_str(), &four) == 1) return true;
    return host.starts_with("[") && host.ends_with("]") &&
           inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six) == 1;
  }

  [[nodiscard]] bool host_allowed(const httplib::Request& request) const {
    if (request.get_header_value_count("Host") != 1) return false;
    const std::string host = request.get_header_value("Host");
    const std::string port = concat(":", port_);
    const auto named = [&](const std::string& name) {
      return host == name + port || (port_ == 80 && host == name);
    };
    if (!is_loopback(options_.address)) {
      if (is_address_here(host)) return true;
    } else {
      for (const char* name : {"127.0.0.1", "localhost", "[::1]"}) {
        if (named(name)) return true;
      }
    }
    const bool six = options_.address.find(':') != std::string::npos;
    return named(six ? concat("[", options_.address, "]") : options_.address) ||
           std::any_of(options_.host_names.begin(), options_.host_names.end(), named);
  }

  [[nodiscard]] bool token_right(const httplib::Request& request) const {
    if (options_.token.empty()) return true;
    constexpr std::string_view kBearer = "Bearer ";
    const std::string header = request.get_header_value("Authorization");
    return equal_in_constant_time(header.starts_with(kBearer) ? header.substr(kBearer.size())
                                                              : request.get_param_value("token"),
                                  options_.token);
  }

  void answer(const httplib::Request& request, httplib::Response& response) {
    response.set_header("Cache-Control", "no-store");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("X-Frame-Options", "DENY");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    response.set_header("Content-Security-Policy",
                        content_security_policy(true) + "; frame-ancestors 'none'");
    const auto refuse = [&](int status, const char* text) {
      response.status = status;
      response.set_content(concat(text, "\n"), kText);
    };
    if (request.method != "GET" && request.method != "HEAD") {
      response.set_header("Allow", "GET, HEAD");
      return refuse(405, "only GET and HEAD");
    }
    if (!host_allowed(request)) return refuse(403, "the Host header is not this dashboard's");
    if (!token_right(request)) return refuse(401, "the token is missing or wrong");
    try {
      response.status = 200;
      if (request.path == "/") {
        response.set_content(dashboard_.page(), "text/html; charset=utf-8");
      } else if (request.path == "/data.json") {
        response.set_content(dashboard_.news({.since = integer_of(request, "since"),
                                              .width = integer_of(request, "width"),
                                              .generation = integer_of(request, "generation"),
                                              .sections = integer_of(request, "sections")}),
                             "application/json");
      } else {
        refuse(404, "not found");
      }
    } catch (const std::exception& error) {
      refuse(503, printable(error.what(), 1000).c_str());
    }
  }

  Dashboard& dashboard_;
  const DashboardOptions options_;
  int port_ = -1;
  std::thread thread_;
};

DashboardServer::DashboardServer(Dashboard& dashboard, const DashboardOptions& options) {
  if (!is_loopback(options.address) && options.token.empty()) {
    fail(ErrorKind::kConfig, printable(options.address),
         ": is not a loopback address; others may only be served with a token");
  }
  state_ = std::make_unique<State>(dashboard, options);
}

DashboardServer::~DashboardServer() = default;

int DashboardServer::port() const { return state_->port(); }

void DashboardServer::stop() { state_->end(); }

}  // namespace lockstep
