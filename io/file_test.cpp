#include "io/file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "io/test_directory.h"

namespace lockstep {
namespace {

using File = TestDirectory;

TEST_F(File, WhatIsWrittenIsRead) {
  const auto file = fs_.open_output(path("a"), OpenMode::kCreateNew);
  file->append("hello ");
  file->append("world");
  file->write_at(0, std::as_bytes(std::span("J", 1)));
  file->sync();
  file->close();
  EXPECT_EQ(read("a"), "Jello world");
  const auto again = fs_.open_output(path("a"), OpenMode::kAppend);
  again->append("!");
  again->close();
  EXPECT_EQ(read("a"), "Jello world!");
  EXPECT_EQ(fs_.file_size(path("a")), 12U);
}

TEST_F(File, ManyThreadsReadAtOnce) {
  std::string bytes(100'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 % 251);
  const auto file = fs_.open_input(write("a", bytes));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i + 100 < bytes.size(); i += 997) {
        std::string part(100, '\0');
        file->read_at(i, std::as_writable_bytes(std::span(part)));
        EXPECT_EQ(part, bytes.substr(i, 100));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(File, MissingInputIsTheUsersToMend) {
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.open_input(path("none")); }, "none", "No such");
  write("file", "x");
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.open_input(path("file/below")); }, "file/below");
  expect_error(ErrorKind::kInput, [&] { (void)fs_.open_input(path(std::string(5000, 'x'))); });
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.open_input(std::string("a\0b", 3)); }, "NUL");
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.list(path("none")); }, "none");
  expect_error(
      ErrorKind::kInput, [&] { fs_.remove(path("none")); }, "none");
}

TEST_F(File, RefusesWhatIsNoRegularFile) {
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.open_input(root_); }, "a directory");
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.open_input("/dev/zero"); }, "a device");
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.open_input(path("fifo")); }, "fifo", "a FIFO");
  expect_error(
      ErrorKind::kInput, [&] { MappedFile map(path("fifo")); }, "fifo");
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.open_output(path("fifo"), OpenMode::kTruncate); }, "fifo");
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.open_output("/dev/full", OpenMode::kAppend); },
      "a device");
  expect_error(ErrorKind::kInput, [&] { (void)fs_.open_output(root_, OpenMode::kTruncate); });
}

TEST_F(File, ReadingPastTheEndIsDamage) {
  const auto name = write("a", "0123456789");
  const auto file = fs_.open_input(name);
  std::string out(4, '\0');
  const auto span = std::as_writable_bytes(std::span(out));
  file->read_at(6, span);
  EXPECT_EQ(out, "6789");
  expect_error(
      ErrorKind::kData, [&] { file->read_at(7, span); }, name, "ends at byte 10");
  expect_error(
      ErrorKind::kData, [&] { file->read_at(~std::uint64_t{0}, span); }, name);
  ASSERT_EQ(::truncate(name.c_str(), 8), 0);
  expect_error(
      ErrorKind::kData, [&] { file->read_at(6, span); }, name, "ends at byte 8", "had 10");
}

TEST_F(File, ANameFromContentsStaysInItsDirectory) {
  write("plain", "x");
  ASSERT_EQ(::symlink("plain", path("link").c_str()), 0);
  EXPECT_EQ(fs_.open_input_in(root_, "plain")->size(), 1U);
  for (const auto& name :
       {std::string("../plain"), std::string("a/b"), std::string("/etc/passwd"), std::string(".."),
        std::string("."), std::string(), std::string("a\\b"), std::string("plain\0", 6)}) {
    expect_error(
        ErrorKind::kData, [&] { (void)fs_.open_input_in(root_, name); }, root_);
  }
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.open_input_in(root_, "link"); }, "link", "symbolic link");
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.open_input_in(root_, "none"); }, "none");
}

TEST_F(File, ShortWritesEndInTheSystemsOwnError) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const auto file = fs_.open_output(path("a"), OpenMode::kCreateNew);
  rlimit small = old;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  // The system takes 1000 of the 1500 bytes, then refuses.
  expect_error(
      ErrorKind::kIo, [&] { file->append(std::string(1500, 'x')); }, path("a"),
      std::strerror(EFBIG));
  expect_error(ErrorKind::kIo, [&] { write_file_atomic(fs_, path("b"), std::string(1500, 'x')); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  (void)std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(read("a"), std::string(1000, 'x'));
  EXPECT_EQ(fs_.list(root_), std::vector<std::string>{"a"});  // nothing of b is left
}

TEST_F(File, SystemRefusalsNameThePathAndTheReason) {
  expect_error(
      ErrorKind::kIo, [&] { (void)fs_.open_output(path("none/a"), OpenMode::kTruncate); }, "none/a",
      std::strerror(ENOENT));
  write("a", "x");
  expect_error(
      ErrorKind::kIo, [&] { (void)fs_.open_output(path("a"), OpenMode::kCreateNew); }, "/a",
      std::strerror(EEXIST));
  expect_error(
      ErrorKind::kIo, [&] { fs_.rename(path("none"), path("b")); }, "none", "/b");
  expect_error(
      ErrorKind::kIo, [&] { fs_.sync_directory(path("none")); }, "none");
  const auto closed = fs_.open_output(path("c"), OpenMode::kTruncate);
  closed->close();
  expect_error(
      ErrorKind::kBug, [&] { closed->append("x"); }, "closed");
}

TEST_F(File, StrangeNamesWorkAndAreShownSafely) {
  for (const std::string name : {"with space", "Grüße-語", "new\nline", "-rf", "esc\x1b[31m"}) {
    write_file_atomic(fs_, path(name), "x");
    EXPECT_EQ(read(name), "x");
  }
  expect_error(
      ErrorKind::kInput, [&] { (void)fs_.open_input(path("no\n\x1b[31m")); }, "\\n", "\\x1b");
}

TEST_F(File, DirectoriesAreMadeListedAndMeasured) {
  fs_.create_directories(path("a/b/c/"));
  fs_.create_directories(path("a/b/c"));
  EXPECT_TRUE(fs_.is_directory(path("a/b/c")));
  write("a/z", "");
  write("a/B", "");
  EXPECT_EQ(fs_.list(path("a")), (std::vector<std::string>{"B", "b", "z"}));
  EXPECT_GT(fs_.free_space(root_), 0U);
  EXPECT_FALSE(fs_.exists(path("none")));
  EXPECT_EQ(fs_.kind(path("a/z"), FollowSymlinks::kNo), FileKind::kRegular);
  expect_error(
      ErrorKind::kInput, [&] { fs_.create_directories(path("a/z")); }, "a/z");
  fs_.truncate(write("t", "12345"), 2);
  EXPECT_EQ(read("t"), "12");
  expect_error(ErrorKind::kBug, [&] { fs_.truncate(path("t"), 3); });
}

TEST_F(File, TreesAreRemovedOnlyUnderTheirMarker) {
  fs_.create_directories(path("run/checkpoints/step/deep"));
  fs_.create_directories(path("outside"));
  write("outside/keep", "x");
  write("run/checkpoints/step/deep/file", "x");
  ASSERT_EQ(::symlink(path("outside").c_str(), path("run/checkpoints/step/link").c_str()), 0);
  const auto step = path("run/checkpoints/step");
  expect_error(
      ErrorKind::kBug, [&] { remove_tree(fs_, step, path("run"), "recipe.toml"); }, "marker");
  write("run/recipe.toml", "");
  for (const auto& wrong : {path("run"), path("outside"), path("run/checkpoints/../../outside"),
                            path("run/checkpoints/step/link"), path("run/recipe.toml"), root_}) {
    expect_error(
        ErrorKind::kBug, [&] { remove_tree(fs_, wrong, path("run"), "recipe.toml"); }, "refuse");
  }
  remove_tree(fs_, step, path("run"), "recipe.toml");
  EXPECT_FALSE(fs_.exists(step));
  EXPECT_EQ(read("outside/keep"), "x");
}

TEST_F(File, ReadFileKeepsToItsLimit) {
  write("a", "12345");
  EXPECT_EQ(read_file(fs_, path("a"), 5), "12345");
  expect_error(
      ErrorKind::kInput, [&] { (void)read_file(fs_, path("a"), 4); }, "/a", "limit of 4");
}

TEST_F(File, AnAtomicFileThatIsNotCommittedLeavesNothing) {
  write("a", "old");
  {
    AtomicFile file(fs_, path("a"));
    file.append("new");
    EXPECT_EQ(read("a"), "old");
  }
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(fs_.list(root_).size(), 1U);
  write("a.tmp-" + std::to_string(::getpid()) + "-0", "left by a crash");
  write_file_atomic(fs_, path("a"), "new");
  EXPECT_EQ(read("a"), "new");
}

TEST_F(File, PathsSplitAndJoin) {
  EXPECT_EQ(parent_directory("a/b/c"), "a/b");
  EXPECT_EQ(parent_directory("a/b/c/"), "a/b");
  EXPECT_EQ(parent_directory("a//b"), "a");
  EXPECT_EQ(parent_directory("c"), ".");
  EXPECT_EQ(parent_directory("/c"), "/");
  EXPECT_EQ(parent_directory("/"), "/");
  EXPECT_EQ(parent_directory(""), ".");
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
}

TEST_F(File, MappingsShowTheFile) {
  const MappedFile first(write("a", "mapped bytes"));
  MappedFile map(path("a"));
  MappedFile other = std::move(map);
  map = std::move(other);
  const auto bytes = map.bytes();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "mapped bytes");
  map.check_size();
  ASSERT_EQ(::truncate(path("a").c_str(), 3), 0);
  expect_error(
      ErrorKind::kData, [&] { map.check_size(); }, "/a", "has 3 bytes", "12");
}

TEST_F(File, AnEmptyMappingIsNamed) {
  write("empty.npy", "");
  expect_error(
      ErrorKind::kInput, [&] { MappedFile map(path("empty.npy")); }, "empty.npy", "0 bytes");
  expect_error(
      ErrorKind::kInput, [&] { MappedFile map(path("none")); }, "none");
  expect_error(
      ErrorKind::kInput, [&] { MappedFile map(root_); }, "not a regular file");
}

}  // namespace
}  // namespace lockstep
