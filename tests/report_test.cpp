// Report and dashboard of the real binary on tiny runs.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "tests/tiny_run.h"

namespace lockstep {
namespace {

class ReportOfTinyRun : public TinyRun {
 protected:
  ProcessResult run(const std::vector<std::string>& arguments) {
    return run_lockstep(directory_, arguments);
  }
  // What the one dashboard of the directory says when it has begun; 0 when it does not within ten
  // seconds.
  [[nodiscard]] int port_of_dashboard() const {
    constexpr std::string_view kUrl = "http://127.0.0.1:";
    for (int i = 0; i < 200; ++i) {
      for (const auto& file : std::filesystem::directory_iterator(directory_)) {
        if (file.path().extension() != ".out") continue;
        const std::string said = read(file.path().filename().string());
        const auto at = said.find(kUrl);
        if (at != std::string::npos) return std::atoi(said.c_str() + at + kUrl.size());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return 0;
  }
};

// GET of a path; the whole answer, empty when nobody listens.
std::string get(int port, const std::string& target) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string all;
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const std::string request =
        concat("GET ", target, " HTTP/1.1\r\nHost: 127.0.0.1:", port, "\r\n\r\n");
    (void)!::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
    char part[4096];
    for (ssize_t got = 0; (got = recv(socket, part, sizeof part, 0)) > 0;) {
      all.append(part, static_cast<std::size_t>(got));
    }
  }
  close(socket);
  return all;
}

TEST_F(ReportOfTinyRun, OneFileShowsResumeAuditEvaluationsAndRecipe) {
  const std::vector<std::string> evaluated = {"eval.interval=4", "eval.mix=data/held.mix"};
  auto first = evaluated;
  first.emplace_back("train.stop_at=10");
  train_well("run", first);
  train_well("run", evaluated);
  const ProcessResult result = run({"report", "run", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(parse_json(result.out, "result")["report"], "run/report.html");
  const std::string html = read("run/report.html");
  for (const char* each :
       {"20 of 20 batches read again: all as logged", "<td>resume</td>", "sliding_window = 8",
        "held, nats a token", "\"memory_bytes\":", "One run: nothing compared."}) {
    EXPECT_NE(html.find(each), std::string::npos) << each;
  }
}

TEST_F(ReportOfTinyRun, ADirectoryIsNotAFileToWrite) {
  train_well("run", {"train.stop_at=1"});
  const ProcessResult result = run({"report", "run", "-o", "run"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("-o run is a directory"), std::string::npos) << result.err;
}

TEST_F(ReportOfTinyRun, ADifferenceOfTwoRunsIsTextJsonAndAPage) {
  train_well("a", {"train.stop_at=8"});
  train_well("b", {"train.stop_at=8", "optim.lr=1e-3"});
  const ProcessResult text = run({"report", "--diff", "a", "b"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("optim.lr: 0.003 -> 0.001"), std::string::npos) << text.out;
  const ProcessResult result = run({"report", "--diff", "a", "b", "-o", "diff.html", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = parse_json(result.out, "result");
  EXPECT_EQ(json["training_loss"]["common_steps"], 8);
  EXPECT_EQ(json["training_loss"]["different_batches"], 0);
  EXPECT_EQ(json["points"].size(), 8U);
  EXPECT_EQ(json["verdicts"][0]["verdict"], "not enough data");
  EXPECT_NE(read("diff.html").find("Recipe keys that differ"), std::string::npos);
}

TEST_F(ReportOfTinyRun, TheDashboardFollowsTrainingAndEndsOnASignal) {
  train_well("run", {"train.stop_at=6"});
  Process dashboard(directory_, {"dashboard", "run", "--port", "0"});
  const int port = port_of_dashboard();
  ASSERT_GT(port, 0);
  const std::string page = get(port, "/");
  EXPECT_NE(page.find("<h1>"), std::string::npos);
  EXPECT_NE(get(port, "/data.json").find("\"step\":[1,2,3,4,5,6]"), std::string::npos);
  const ProcessResult second =
      run_lockstep(directory_ + "/data", {"dashboard", "../run", "--port", std::to_string(port)});
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_NE(second.err.find("the port is in use"), std::string::npos) << second.err;
  train_well("run");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_NE(get(port, "/data.json").find(",19,20]"), std::string::npos);
  dashboard.signal(SIGTERM);
  EXPECT_EQ(dashboard.wait().exit_code, 0);
}

}  // namespace
}  // namespace lockstep
