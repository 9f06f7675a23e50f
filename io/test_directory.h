#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>

#include "base/error.h"
#include "io/file.h"

// For the tests of this folder only.
namespace lockstep {

// A directory of its own for each test, removed at its end.
class TestDirectory : public ::testing::Test {
 protected:
  TestDirectory() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = ::testing::TempDir() + "lockstep_io_" + std::to_string(::getpid()) + "_" +
            info->test_suite_name() + "_" + info->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~TestDirectory() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::string path(const std::string& name) const { return root_ + "/" + name; }
  std::string write(const std::string& name, std::string_view bytes) const {
    const auto file = fs_.open_output(path(name), OpenMode::kTruncate);
    file->append(bytes);
    file->close();
    return path(name);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return read_file(fs_, path(name), std::uint64_t{1} << 30);
  }

  std::string root_;
  FileSystem& fs_ = FileSystem::real();
};

// Expects an Error of this kind whose text holds every one of `parts`; gives the text.
template <class... Parts>
std::string expect_error(ErrorKind kind, const std::function<void()>& run, const Parts&... parts) {
  try {
    run();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << text;
    for (const std::string& part : std::initializer_list<std::string>{parts...}) {
      EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
    }
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

}  // namespace lockstep
