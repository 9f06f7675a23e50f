#include "report/dashboard.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "data/scratch_directory.h"
#include "report/dashboard_server.h"

namespace lockstep {
namespace {

constexpr const char* kRecipe =
    "[run]\nname = 'live'\n[data]\nmix = 'm'\nsequence_length = 32\n[batch]\ninstances = 4\n"
    "[train]\nsteps = 2\nprecision = 'fp32'\n";

std::string line(int step, double loss) {
  return concat(R"({"step":)", step, R"(,"loss":)", loss, R"(,"seconds":0.25})", "\n");
}

// A run directory that is written to, and what a page asks about it.
class LiveRun : public ::testing::Test {
 protected:
  void SetUp() override {
    run_.write("recipe.toml", kRecipe);
    run_.write("metrics.jsonl", line(1, 5) + line(2, 4));
  }
  [[nodiscard]] std::unique_ptr<Dashboard> open() const {
    return std::make_unique<Dashboard>(fs_, load_evidence(fs_, run_.path()), 0);
  }
  void append(const std::string& text) const {
    std::ofstream(run_.path("metrics.jsonl"), std::ios::binary | std::ios::app) << text;
  }
  static Json news(Dashboard& dashboard, const Dashboard::Known& known) {
    return parse_json(dashboard.news(known), "news");
  }

  ScratchDirectory run_;
  FileSystem& fs_ = FileSystem::real();
};

TEST_F(LiveRun, SendsOnlyStepsThatThePageDoesNotHave) {
  const auto dashboard = open();
  const Json all = news(*dashboard, {});
  EXPECT_EQ(all["step"], Json({1, 2}));
  EXPECT_TRUE(all["sections"].contains("summary"));
  const Dashboard::Known known{.since = 2,
                               .width = 1,
                               .generation = all["generation"].get<std::int64_t>(),
                               .sections = all["section_revision"].get<std::int64_t>()};
  const Json nothing = news(*dashboard, known);
  EXPECT_EQ(nothing["step"], Json::array());
  EXPECT_FALSE(nothing.contains("sections"));
  append(line(3, 3.5));
  const Json one = news(*dashboard, known);
  EXPECT_EQ(one["step"], Json({3}));
  EXPECT_EQ(one["columns"]["loss"]["mean"], Json({3.5}));
  EXPECT_NE(one["sections"]["summary"].get<std::string>().find("1 to 3"), std::string::npos);
}

TEST_F(LiveRun, LeavesATornLastLineUntilItIsWhole) {
  append(R"({"step":3,"lo)");
  const auto dashboard = open();
  EXPECT_EQ(news(*dashboard, {})["step"], Json({1, 2}));
  append("ss\":3}\n");
  const Json whole = news(*dashboard, {});
  EXPECT_EQ(whole["step"], Json({1, 2, 3}));
  EXPECT_EQ(whole["columns"]["loss"]["mean"][2], 3);
}

TEST_F(LiveRun, SendsEverythingAnewWhenAResumeReplacedSteps) {
  const auto dashboard = open();
  const Json before = news(*dashboard, {});
  run_.write("metrics.jsonl", line(1, 5) + line(2, 4.25) + line(3, 4));
  const Json after = news(
      *dashboard, {.since = 2, .width = 1, .generation = before["generation"].get<std::int64_t>()});
  EXPECT_NE(after["generation"], before["generation"]);
  EXPECT_EQ(after["columns"]["loss"]["mean"], Json({5, 4.25, 4}));
}

TEST_F(LiveRun, ADamagedLineIsNamedAndTheNextQuestionTriesAgain) {
  const auto dashboard = open();
  append("not json\n");
  EXPECT_THROW((void)dashboard->news({}), Error);
  run_.write("metrics.jsonl", line(1, 5));
  EXPECT_EQ(news(*dashboard, {})["step"], Json({1}));
}

struct Answer {
  int status = 0;
  std::string head;
  std::string body;
};

// The server on a port of its own, spoken to over a real socket.
class Served : public LiveRun {
 protected:
  void SetUp() override {
    LiveRun::SetUp();
    dashboard_ = open();
  }
  void serve(const DashboardOptions& options = {}) {
    server_ = std::make_unique<DashboardServer>(*dashboard_, options);
  }
  // Sends the bytes as they are and reads until the server closes.
  [[nodiscard]] Answer send_raw(const std::string& bytes) const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    (void)!::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::string all;
    char part[4096];
    for (ssize_t got = 0; (got = recv(socket, part, sizeof part, 0)) > 0;) {
      all.append(part, static_cast<std::size_t>(got));
    }
    close(socket);
    Answer answer;
    if (all.size() > 12) answer.status = std::stoi(all.substr(9, 3));
    const std::size_t end = all.find("\r\n\r\n");
    answer.head = all.substr(0, end);
    if (end != std::string::npos) answer.body = all.substr(end + 4);
    return answer;
  }
  [[nodiscard]] Answer ask(const std::string& target, const std::string& method = "GET",
                           const std::string& more = "") const {
    return send_raw(concat(method, " ", target, " HTTP/1.1\r\nHost: 127.0.0.1:", server_->port(),
                           "\r\n", more, "\r\n"));
  }

  std::unique_ptr<Dashboard> dashboard_;
  std::unique_ptr<DashboardServer> server_;
};

TEST_F(Served, ThePageAndItsNews) {
  serve();
  const Answer page = ask("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.head.find("text/html"), std::string::npos);
  EXPECT_NE(page.head.find("connect-src 'self'"), std::string::npos);
  EXPECT_EQ(page.head.find("Access-Control"), std::string::npos);
  EXPECT_NE(page.body.find("\"interval_ms\""), std::string::npos);
  const Answer news = ask("/data.json?since=1&width=1&generation=1&sections=0");
  EXPECT_EQ(news.status, 200);
  EXPECT_EQ(parse_json(news.body, "news")["step"], Json({2}));
  EXPECT_EQ(parse_json(ask("/data.json?since=none").body, "news")["step"], Json({1, 2}));
}

TEST_F(Served, HeadIsTheSameWithoutABody) {
  serve();
  const Answer head = ask("/", "HEAD");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  EXPECT_NE(head.head.find("Content-Length: "), std::string::npos);
}

TEST_F(Served, OtherMethodsAndPathsAreRefused) {
  serve();
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    EXPECT_EQ(ask("/", method).status, 405) << method;
  }
  for (const char* path : {"/recipe.toml", "/../recipe.toml", "/%2e%2e/recipe.toml", "//",
                           "/metrics.jsonl", "/index.html", "/favicon.ico"}) {
    EXPECT_EQ(ask(path).status, 404) << path;
  }
}

TEST_F(Served, AnotherHostIsRefused) {
  serve();
  const auto with_host = [&](const std::string& host) {
    return send_raw(concat("GET / HTTP/1.1\r\nHost: ", host, "\r\n\r\n")).status;
  };
  EXPECT_EQ(with_host(concat("localhost:", server_->port())), 200);
  EXPECT_EQ(with_host(concat("evil.example:", server_->port())), 403);
  EXPECT_EQ(with_host("127.0.0.1"), 403);
  EXPECT_EQ(with_host(concat("127.0.0.1:", server_->port() + 1)), 403);
  EXPECT_EQ(send_raw("GET / HTTP/1.1\r\n\r\n").status, 403);
  EXPECT_EQ(ask("/", "GET", "Host: evil.example\r\n").status, 403);  // twice
}

TEST_F(Served, ATokenIsAskedForWhenThereIsOne) {
  serve({.token = "0123456789abcdef"});
  EXPECT_EQ(ask("/").status, 401);
  EXPECT_EQ(ask("/?token=0123456789abcdeg").status, 401);
  EXPECT_EQ(ask("/data.json?token=").status, 401);
  EXPECT_EQ(ask("/?token=0123456789abcdef").status, 200);
  EXPECT_EQ(ask("/", "GET", "Authorization: Bearer 0123456789abcdef\r\n").status, 200);
}

TEST_F(Served, HeadsThatAreTooLongOrTooSlowAreCutOff) {
  serve({.request_ms = 100});
  EXPECT_EQ(ask("/", "GET", "X: " + std::string(9000, 'x') + "\r\n").status, 431);
  const std::int64_t begin = now_ns();
  EXPECT_EQ(send_raw("GET / HTTP/1.1\r\nHost: ").status, 408);
  EXPECT_LT(now_ns() - begin, 5'000'000'000);
  EXPECT_EQ(ask("/").status, 200);
}

TEST_F(Served, SurvivesRequestsThatAreNone) {
  serve({.request_ms = 100});
  std::string ranges = "Range: bytes=0-1";
  while (ranges.size() < 7900) ranges += ",0-1";
  for (const std::string& bytes :
       {std::string("\r\n\r\n"), std::string("GET\r\n\r\n"), std::string("\0\xFF\r\n\r\n", 6),
        std::string("GET / HTTP/9.9\r\n\r\n"), std::string("GET http://x HTTP/1.1\r\n\r\n")}) {
    EXPECT_NE(send_raw(bytes).status, 200);
  }
  (void)ask("/", "GET", ranges + "\r\n");
  EXPECT_EQ(ask("/").status, 200);
}

TEST_F(Served, TwoCannotShareAPort) {
  serve();
  try {
    const DashboardServer second(*dashboard_, {.port = server_->port()});
    ADD_FAILURE() << "both listen";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(std::string(error.what()).find("in use"), std::string::npos) << error.what();
  }
  server_->stop();
  const DashboardServer next(*dashboard_, {.port = server_->port()});
}

TEST_F(Served, OtherMachinesOnlyWithAToken) {
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0"));
  EXPECT_FALSE(is_loopback("127.example.org"));
  EXPECT_THROW(serve({.address = "0.0.0.0"}), Error);
  serve({.address = "0.0.0.0", .token = "0123456789abcdef", .host_names = {"trainer"}});
  const auto with_host = [&](const std::string& host) {
    return send_raw(concat("GET /?token=0123456789abcdef HTTP/1.1\r\nHost: ", host, ":",
                           server_->port(), "\r\n\r\n"))
        .status;
  };
  EXPECT_EQ(ask("/").status, 401);
  EXPECT_EQ(with_host("10.1.2.3"), 200);
  EXPECT_EQ(with_host("trainer"), 200);
  EXPECT_EQ(with_host("evil.example"), 403);
  EXPECT_THROW(serve({.address = "192.0.2.1", .token = "0123456789abcdef"}), Error);
}

TEST_F(Served, ADamagedRunIsAnAnswer) {
  serve();
  append("not json\n");
  const Answer answer = ask("/data.json");
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("metrics.jsonl:3"), std::string::npos) << answer.body;
}

TEST_F(Served, ManyAtOnceAreAllAnswered) {
  serve();
  std::vector<std::thread> threads;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 24; ++i) {
    threads.emplace_back([&] { answered += ask("/data.json").status == 200 ? 1 : 0; });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(answered, 24);
}

}  // namespace
}  // namespace lockstep
