#include "io/jsonl.h"

#include "io/test_directory.h"

namespace lockstep {
namespace {

class Jsonl : public TestDirectory {
 protected:
  JsonlTail collect(std::size_t max_line_bytes = 1000) {
    lines_.clear();
    return read_jsonl(
        fs_, path("m"),
        [&](const JsonlLine& line) {
          lines_.push_back(std::to_string(line.number) + "@" + std::to_string(line.offset) + ":" +
                           std::string(line.text));
        },
        max_line_bytes);
  }
  std::vector<std::string> lines_;
};

TEST_F(Jsonl, RoundTripsAcrossReopening) {
  for (const std::string line : {"{}", "{\"a\":1}"}) {
    JsonlWriter writer(fs_, path("m"));
    writer.append_line(line);
    writer.sync();
    writer.close();
  }
  const auto tail = collect();
  EXPECT_EQ(lines_, (std::vector<std::string>{"1@0:{}", "2@3:{\"a\":1}"}));
  EXPECT_EQ(tail.lines, 2U);
  EXPECT_EQ(tail.complete_bytes, 11U);
  EXPECT_EQ(tail.torn_bytes, 0U);
}

TEST_F(Jsonl, ATornLastLineIsReportedAtEveryCutAndMendedByTheWriter) {
  const std::string whole = "{\"a\":1}\n{\"b\":22}\n";
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    write("m", whole.substr(0, cut));
    const std::size_t complete = cut < 8 ? 0 : cut < whole.size() ? 8 : whole.size();
    const auto tail = collect();
    EXPECT_EQ(tail.complete_bytes, complete) << cut;
    EXPECT_EQ(tail.torn_bytes, cut - complete) << cut;
    JsonlWriter(fs_, path("m")).append_line("[]");
    EXPECT_EQ(read("m"), whole.substr(0, complete) + "[]\n") << cut;
  }
}

TEST_F(Jsonl, LinesLongerThanAChunkAreWhole) {
  const std::string big(200'001, 'x');
  write("m", "\n" + big + "\n" + big);
  const auto tail = collect(big.size());
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_EQ(lines_[0], "2@1:" + big);
  EXPECT_EQ(tail.torn_bytes, big.size());
  JsonlWriter(fs_, path("m")).append_line("[]");
  EXPECT_EQ(read("m"), "\n" + big + "\n[]\n");
  expect_error(
      ErrorKind::kData, [&] { (void)collect(big.size() - 1); }, path("m"), "line 2", "at byte 1");
}

TEST_F(Jsonl, ALineHoldsNoNewline) {
  JsonlWriter writer(fs_, path("m"));
  expect_error(ErrorKind::kBug, [&] { writer.append_line("{\n}"); });
}

}  // namespace
}  // namespace lockstep
