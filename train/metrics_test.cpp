#include "train/metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "train/consumed_log.h"
#include "train/run_lock.h"

namespace lockstep {
namespace {

class RunFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = (std::filesystem::temp_directory_path() /
                  concat("lockstep-run-files-", getpid(), "-",
                         ::testing::UnitTest::GetInstance()->current_test_info()->name()))
                     .string();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(directory_ + "/" + name, std::ios::binary).rdbuf();
    return text.str();
  }
  static StepRecord record(std::int64_t step) {
    StepRecord r;
    r.step = step;
    r.loss = 1.0 / static_cast<double>(step + 2);
    r.grad_norm = std::sqrt(static_cast<double>(step));
    r.batch_digest = concat("digest", step);
    return r;
  }

  std::string directory_;
  FileSystem& fs_ = FileSystem::real();
};

TEST(StepRecord, LineHoldsTheMemoryThatTheSystemTells) {
  StepRecord r;
  EXPECT_FALSE(parse_json(to_json_line(r), "line").contains("memory_bytes"));
  r.memory_bytes = resident_bytes();
  EXPECT_GT(parse_json(to_json_line(r), "line")["memory_bytes"].get<std::int64_t>(), 1 << 20);
}

TEST(StepRecord, LineHoldsTheExactLossAndTheNamesOthersRelyOn) {
  StepRecord r;
  r.step = 7;
  r.loss = 0.1;
  const Json json = parse_json(to_json_line(r), "line");
  for (const char* key : {"step", "loss", "ce_loss", "z_loss", "loss_bits", "grad_norm", "lr",
                          "batch_digest", "tokens", "tokens_per_s", "mfu", "skipped"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["loss_bits"], "3fb999999999999a");
  EXPECT_EQ(json["skipped"], false);
}

TEST(StepRecord, NumbersThatAreNotFiniteAreNullButTheirBitsStay) {
  StepRecord r;
  r.loss = std::nan("");
  r.skipped = "not finite";
  const Json json = parse_json(to_json_line(r), "line");
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_EQ(json["loss_bits"].get<std::string>().substr(0, 3), "7ff");
  EXPECT_EQ(json["skip_reason"], "not finite");
}

TEST_F(RunFiles, AResumeKeepsEarlierLinesAndRemembersLaterOnes) {
  {
    MetricsLog log(fs_, directory_, 0, {.tensorboard = false, .csv = true});
    for (std::int64_t step = 1; step <= 5; ++step) log.add(record(step));
  }
  MetricsLog log(fs_, directory_, 3, {.tensorboard = false, .csv = true});
  ASSERT_EQ(log.superseded().size(), 2U);
  EXPECT_EQ(log.superseded().at(4).batch_digest, "digest4");
  ReplayCheck check(log.superseded());
  log.add(record(4));
  check.add(record(4));
  EXPECT_FALSE(check.complete());
  check.add(record(5));
  EXPECT_TRUE(check.complete());
  EXPECT_EQ(check.different(), 0);
  EXPECT_NE(check.text().find("difference 0.000"), std::string::npos);
  const std::string metrics = read("metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 4);
  EXPECT_FALSE(read("metrics.superseded-1.jsonl").empty());
  const std::string csv = read("metrics.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5) << csv;  // header and four steps
}

TEST_F(RunFiles, ADifferenceOfOneBitIsReported) {
  const std::map<std::int64_t, LoggedStep> logged = {
      {4,
       {double_bits(record(4).loss), double_bits(record(4).grad_norm), "digest4", record(4).loss}}};
  StepRecord other = record(4);
  other.loss = std::nextafter(other.loss, 1.0);
  ReplayCheck check(logged);
  check.add(other);
  EXPECT_EQ(check.different(), 1);
  EXPECT_GT(check.max_loss_difference(), 0);
  other = record(4);
  other.batch_digest = "other";
  ReplayCheck digest_check(logged);
  digest_check.add(other);
  EXPECT_EQ(digest_check.different(), 1);
}

TEST_F(RunFiles, ATornLastLineIsCutOff) {
  {
    MetricsLog log(fs_, directory_, 0, {.tensorboard = false, .csv = false});
    log.add(record(1));
  }
  std::ofstream(directory_ + "/metrics.jsonl", std::ios::app) << R"({"step":2,"lo)";
  MetricsLog log(fs_, directory_, 1, {.tensorboard = false, .csv = false});
  log.add(record(2));
  const std::string metrics = read("metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 2) << metrics;
}

TEST_F(RunFiles, ALineThatIsNoRecordIsNamed) {
  std::ofstream(directory_ + "/metrics.jsonl") << "{\"loss\":1}\n";
  try {
    MetricsLog log(fs_, directory_, 1, {});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("metrics.jsonl:1"), std::string::npos);
  }
}

TEST_F(RunFiles, ConsumedRangesMergeStepsAndAreCutAtAResume) {
  {
    ConsumedLog log(fs_, directory_, 0);
    for (std::int64_t step = 1; step <= 6; ++step) {
      const bool second = step > 4;  // a new epoch
      log.add({.step = step,
               .epoch = second ? 2 : 1,
               .begin = (second ? step - 5 : step - 1) * 10,
               .end = (second ? step - 4 : step) * 10,
               .passed_over = false,
               .batch_digest = "d"});
      if (step == 2 || step == 6) log.flush();
    }
  }
  const std::string before = read("consumed/ranges.jsonl");
  EXPECT_EQ(std::count(before.begin(), before.end(), '\n'), 3) << before;
  EXPECT_NE(before.find(R"("first_step":3,"last_step":4,"epoch":1,"begin":20,"end":40)"),
            std::string::npos)
      << before;
  const ConsumedLog log(fs_, directory_, 4);
  EXPECT_EQ(read("consumed/ranges.jsonl"), before.substr(0, before.rfind("{\"first_step\":5")));
}

TEST(Crc32c, MatchesThePublishedVector) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);  // RFC 3720, appendix B.4's check value
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
}

TEST_F(RunFiles, TensorBoardRecordsAreFramedAndChecked) {
  {
    TensorBoardWriter writer(fs_, directory_, 1);
    const std::array<std::pair<std::string_view, double>, 1> values = {{{"train/loss", 2.5}}};
    writer.scalars(3, values);
    writer.close();
  }
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    bytes = read(entry.path().filename().string());
  }
  int records = 0;
  while (!bytes.empty()) {
    ASSERT_GE(bytes.size(), 16U);
    std::uint64_t length = 0;
    std::uint32_t header_crc = 0;
    std::uint32_t data_crc = 0;
    std::memcpy(&length, bytes.data(), 8);
    std::memcpy(&header_crc, bytes.data() + 8, 4);
    const auto masked = [](std::string_view text) {
      const std::uint32_t crc = crc32c(text);
      return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
    };
    EXPECT_EQ(header_crc, masked(std::string_view(bytes).substr(0, 8)));
    std::memcpy(&data_crc, bytes.data() + 12 + length, 4);
    EXPECT_EQ(data_crc, masked(std::string_view(bytes).substr(12, length)));
    if (++records == 3) {
      EXPECT_NE(bytes.find("train/loss"), std::string::npos);
    }
    bytes.erase(0, 16 + length);
  }
  EXPECT_EQ(records, 3);  // version, session start, scalars
}

TEST_F(RunFiles, TheLockNamesItsHolderAndEndsWithIt) {
  {
    const RunLock lock(directory_);
    try {
      const RunLock second(directory_);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      EXPECT_NE(std::string(error.what()).find(concat("pid ", getpid())), std::string::npos)
          << error.what();
    }
  }
  const RunLock again(directory_);
}

}  // namespace
}  // namespace lockstep
