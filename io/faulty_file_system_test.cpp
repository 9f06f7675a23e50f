#include "io/faulty_file_system.h"

#include <cerrno>
#include <cstring>

#include "io/atomic_file.h"
#include "io/jsonl.h"
#include "io/test_directory.h"

namespace lockstep {
namespace {

using Fault = TestDirectory;

TEST_F(Fault, EveryFailureOfAnAtomicWriteNamesItselfAndKeepsAWholeFile) {
  std::uint64_t n = 1;
  for (;; ++n) {
    write("a", "old");
    FaultyFileSystem faulty(fs_);
    faulty.fail_at(n, ENOSPC);
    bool failed = false;
    try {
      write_file_atomic(faulty, path("a"), "a whole new text");
    } catch (const Error& error) {
      failed = true;
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      EXPECT_NE(std::string(error.what()).find(std::strerror(ENOSPC)), std::string::npos);
      EXPECT_NE(std::string(error.what()).find(root_), std::string::npos);
    }
    if (!failed) break;
    const bool only_last_sync_failed = n == 6;
    EXPECT_EQ(read("a"), only_last_sync_failed ? "a whole new text" : "old") << n;
    EXPECT_EQ(fs_.list(root_).size(), 1U) << n;
  }
  EXPECT_EQ(n, 7U);  // open, append, sync, close, rename, sync of the directory
}

TEST_F(Fault, ADiskThatStaysFullStillLeavesTheOldFile) {
  write("a", "old");
  for (std::uint64_t n = 1; n <= 5; ++n) {
    FaultyFileSystem faulty(fs_);
    faulty.fail_from(n, EDQUOT);
    expect_error(
        ErrorKind::kIo, [&] { write_file_atomic(faulty, path("a"), "new text"); },
        std::strerror(EDQUOT));
    EXPECT_EQ(read("a"), "old");
  }
}

TEST_F(Fault, AKillOrPowerCutAtAnyCallLeavesTheOldOrTheNewFile) {
  for (const int cut : {0, 1, 2}) {
    bool saw_new = false;
    for (std::uint64_t n = 1;; ++n) {
      for (const auto& name : fs_.list(root_)) fs_.remove(path(name));
      write("a", "old");
      FaultyFileSystem faulty(fs_);
      faulty.kill_at(n);
      try {
        write_file_atomic(faulty, path("a"), "a whole new text");
      } catch (const ProcessKilled& kill) {
        EXPECT_EQ(kill.call, n);
      }
      const bool killed = faulty.killed();
      if (cut == 1) faulty.cut_power(PowerCut::kDataLost);
      if (cut == 2) faulty.cut_power(PowerCut::kEverythingLost);
      const auto text = read("a");
      EXPECT_TRUE(text == "old" || text == "a whole new text") << n << ": " << text;
      if (!killed) {
        EXPECT_EQ(text, "a whole new text") << "a finished write must survive";
        break;
      }
      saw_new = saw_new || text == "a whole new text";
    }
    // Killed between rename and the directory's sync: the name may or may not have changed.
    EXPECT_EQ(saw_new, cut != 2);
  }
}

TEST_F(Fault, AKilledProcessDoesNothingMore) {
  FaultyFileSystem faulty(fs_);
  const auto file = faulty.open_output(path("a"), OpenMode::kCreateNew);
  faulty.kill_at(2);
  EXPECT_THROW(file->append("12345678"), ProcessKilled);
  EXPECT_THROW(file->append("x"), ProcessKilled);
  EXPECT_THROW(faulty.remove(path("a")), ProcessKilled);
  EXPECT_THROW(faulty.create_directories(path("d")), ProcessKilled);
  EXPECT_EQ(read("a"), "1234");  // half of what it was writing
  EXPECT_EQ(faulty.calls(), 2U);
}

TEST_F(Fault, ARenameThatOvertakesItsDataIsSeenAsTorn) {
  FaultyFileSystem faulty(fs_);
  const auto file = faulty.open_output(path("a.tmp"), OpenMode::kCreateNew);
  file->append("synced ");
  file->sync();
  file->append("and not");
  file->close();
  faulty.rename(path("a.tmp"), path("a"));
  faulty.cut_power(PowerCut::kDataLost);
  EXPECT_EQ(read("a"), "synced ");
}

TEST_F(Fault, APowerCutUndoesOverwritesRemovalsAndNames) {
  write("kept", "0123456789");
  write("removed", "back again");
  write("target", "old target");
  FaultyFileSystem faulty(fs_);
  const auto file = faulty.open_output(path("kept"), OpenMode::kAppend);
  file->append("tail");
  const auto fresh = faulty.open_output(path("fresh"), OpenMode::kCreateNew);
  fresh->append("abcdef");
  fresh->sync();
  fresh->write_at(2, std::as_bytes(std::span("XY", 2)));
  fresh->write_at(3, std::as_bytes(std::span("ZZZZZ", 5)));
  EXPECT_EQ(read("fresh"), "abXZZZZZ");
  faulty.sync_directory(root_);
  faulty.remove(path("removed"));
  faulty.rename(path("fresh"), path("target"));
  faulty.cut_power(PowerCut::kEverythingLost);
  EXPECT_EQ(read("kept"), "0123456789");
  EXPECT_EQ(read("removed"), "back again");
  EXPECT_EQ(read("target"), "old target");
  EXPECT_EQ(read("fresh"), "abcdef");
}

TEST_F(Fault, AnUnsyncedNameInsideARenamedDirectoryIsLost) {
  FaultyFileSystem faulty(fs_);
  faulty.create_directories(path("step.tmp"));
  for (const std::string name : {"first", "second"}) {
    const auto file = faulty.open_output(path("step.tmp/" + name), OpenMode::kCreateNew);
    file->append("data");
    file->sync();
    file->close();
    if (name == "first") faulty.sync_directory(path("step.tmp"));
  }
  faulty.rename(path("step.tmp"), path("step"));
  faulty.sync_directory(root_);
  faulty.cut_power(PowerCut::kEverythingLost);
  EXPECT_EQ(fs_.list(path("step")), std::vector<std::string>{"first"});
}

TEST_F(Fault, TheLogShowsTheOrderOfCalls) {
  FaultyFileSystem faulty(fs_);
  write_file_atomic(faulty, path("a"), "x");
  std::vector<std::string> verbs;
  for (const auto& line : faulty.log()) verbs.push_back(line.substr(0, line.find(' ')));
  EXPECT_EQ(verbs, (std::vector<std::string>{"open_output", "append", "sync", "close", "rename",
                                             "sync_directory"}));
}

TEST_F(Fault, AJsonLineThatFailedIsCutOffBeforeTheNext) {
  FaultyFileSystem faulty(fs_);
  JsonlWriter writer(faulty, path("m.jsonl"));
  writer.append_line("{\"step\":1}");
  faulty.fail_at(3, ENOSPC);
  expect_error(ErrorKind::kIo, [&] { writer.append_line("{\"step\":2}"); });
  EXPECT_NE(read("m.jsonl").back(), '\n');
  writer.append_line("{\"step\":3}");
  writer.close();
  EXPECT_EQ(read("m.jsonl"), "{\"step\":1}\n{\"step\":3}\n");
}

}  // namespace
}  // namespace lockstep
