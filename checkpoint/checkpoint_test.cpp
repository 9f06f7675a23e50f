#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/thread_pool.h"
#include "checkpoint/async_saver.h"
#include "checkpoint/paths.h"
#include "checkpoint/retention.h"
#include "io/faulty_file_system.h"

namespace lockstep {
namespace {

namespace stdfs = std::filesystem;

// A directory of checkpoints of a two-tensor model whose values are a function of the step.
class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = (stdfs::temp_directory_path() /
                  concat("lockstep-checkpoint-", getpid(), "-",
                         ::testing::UnitTest::GetInstance()->current_test_info()->name()))
                     .string();
    stdfs::remove_all(directory_);
    stdfs::create_directories(directory_);
  }
  void TearDown() override { stdfs::remove_all(directory_); }

  CheckpointContents contents(std::int64_t step) {
    for (auto* values : {&a_, &b_}) {
      std::iota(values->begin(), values->end(), static_cast<float>(step));
    }
    CheckpointContents c;
    c.state.step = step;
    c.state.adam_step = step - 1;
    c.state.skip.losses = {0.1, std::numeric_limits<double>::denorm_min()};
    c.state.skip.grad_norms = {1.0 / 3.0, 2.0};
    c.state.data_fingerprint = "data";
    c.recipe_toml = "[model]\n";
    c.recipe_fingerprint = "abc";
    c.hf_config = "{}\n";
    c.tensors = {{"b", {3, 5}, b_, b_, b_}, {"a.weight", {7}, a_, a_, a_}};
    return c;
  }
  std::string save(FileSystem& fs, std::int64_t step) {
    return write_checkpoint(fs, directory_, contents(step));
  }
  void corrupt_byte(const std::string& path, std::uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 0x10));
  }
  void expect_damaged(const std::string& path) {
    try {
      CheckpointReader(FileSystem::real(), path).verify();
      ADD_FAILURE() << "not noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    }
  }

  std::string directory_;
  std::vector<float> a_ = std::vector<float>(7);
  std::vector<float> b_ = std::vector<float>(15);
};

TEST_F(CheckpointTest, ReadsBackEveryBit) {
  const std::string path = save(FileSystem::real(), 12);
  EXPECT_EQ(path, directory_ + "/step-00000012");
  const CheckpointReader reader(FileSystem::real(), path);
  reader.verify();
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"a.weight", "b"}));
  EXPECT_EQ(reader.shape("b"), (std::vector<std::uint64_t>{3, 5}));
  std::vector<float> b(15);
  reader.read(TensorPart::kSecondMoment, "b", b);
  EXPECT_EQ(b, b_);
  EXPECT_EQ(reader.state().adam_step, 11);
  EXPECT_EQ(reader.state().skip.losses, contents(12).state.skip.losses);
  EXPECT_EQ(reader.state().skip.grad_norms, contents(12).state.skip.grad_norms);
  EXPECT_EQ(reader.recipe_toml(), "[model]\n");
}

TEST_F(CheckpointTest, DigestIsAFunctionOfTheStateAlone) {
  const CheckpointReader first(FileSystem::real(), save(FileSystem::real(), 3));
  const std::string digest = first.digest();
  stdfs::rename(directory_ + "/step-00000003", directory_ + "/step-00000004");
  EXPECT_EQ(CheckpointReader(FileSystem::real(), directory_ + "/step-00000004").digest(), digest);
  EXPECT_EQ(CheckpointReader(FileSystem::real(), save(FileSystem::real(), 3)).digest(), digest);
  auto other = contents(3);
  other.state.skip.grad_norms[1] += 1e-15;
  EXPECT_NE(
      CheckpointReader(FileSystem::real(), write_checkpoint(FileSystem::real(), directory_, other))
          .digest(),
      digest);
}

TEST_F(CheckpointTest, EveryFlippedByteOfEveryFileIsNoticed) {
  const std::string path = save(FileSystem::real(), 1);
  for (const auto& entry : stdfs::directory_iterator(path)) {
    const auto bytes = entry.file_size();
    for (std::uint64_t offset = 0; offset < bytes; offset += 1 + bytes / 97) {
      corrupt_byte(entry.path(), offset);
      expect_damaged(path);
      corrupt_byte(entry.path(), offset);
    }
  }
  CheckpointReader(FileSystem::real(), path).verify();
}

TEST_F(CheckpointTest, EveryTruncationAndMissingFileIsNoticed) {
  const std::string path = save(FileSystem::real(), 1);
  std::vector<std::string> files;
  for (const auto& entry : stdfs::directory_iterator(path)) files.push_back(entry.path());
  for (const auto& file : files) {
    const std::string copy = directory_ + "/copy";
    const auto bytes = stdfs::file_size(file);
    for (const auto keep : {std::uintmax_t{0}, std::uintmax_t{1}, bytes / 2, bytes - 1}) {
      stdfs::copy_file(file, copy, stdfs::copy_options::overwrite_existing);
      stdfs::resize_file(file, keep);
      expect_damaged(path);
      stdfs::rename(copy, file);
    }
    stdfs::rename(file, copy);
    expect_damaged(path);
    stdfs::rename(copy, file);
  }
}

TEST_F(CheckpointTest, AKillAtAnyCallLeavesTheOlderCheckpointOrTheNewOneWhole) {
  save(FileSystem::real(), 1);
  for (std::uint64_t n = 1;; ++n) {
    stdfs::remove_all(directory_ + "/step-00000002");
    FaultyFileSystem fs(FileSystem::real());
    fs.kill_at(n);
    try {
      save(fs, 2);
    } catch (const ProcessKilled&) {
    }
    const bool killed = fs.killed();
    fs.cut_power(PowerCut::kDataLost);
    remove_unfinished(FileSystem::real(), directory_);
    const auto reader = open_newest(FileSystem::real(), directory_,
                                    [](const std::string& text) { ADD_FAILURE() << text; });
    ASSERT_NE(reader, nullptr) << "killed at call " << n;
    EXPECT_EQ(stdfs::exists(directory_ + "/step-00000001"), true);
    EXPECT_LE(std::distance(stdfs::directory_iterator(directory_), {}), 2);
    if (!killed) {
      EXPECT_EQ(reader->state().step, 2);
      EXPECT_GT(n, 20U);
      break;
    }
  }
}

TEST_F(CheckpointTest, AKillWhileReplacingAStepKeepsOneOfThemWhole) {
  for (std::uint64_t n = 1;; ++n) {
    save(FileSystem::real(), 2);
    FaultyFileSystem fs(FileSystem::real());
    fs.kill_at(n);
    try {
      save(fs, 2);
    } catch (const ProcessKilled&) {
    }
    remove_unfinished(FileSystem::real(), directory_);
    const auto reader = open_newest(FileSystem::real(), directory_,
                                    [](const std::string& text) { ADD_FAILURE() << text; });
    ASSERT_NE(reader, nullptr) << "killed at call " << n;
    if (!fs.killed()) break;
  }
}

TEST_F(CheckpointTest, AnErrorAtAnyCallKeepsTheOlderOneAndLeavesNothingBehind) {
  save(FileSystem::real(), 1);
  for (std::uint64_t n = 1;; ++n) {
    FaultyFileSystem fs(FileSystem::real());
    fs.fail_at(n, ENOSPC);
    try {
      save(fs, 2);
      if (fs.calls() < n) break;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
    }
    stdfs::remove_all(directory_ + "/step-00000002");  // whole, when only the last sync failed
    EXPECT_EQ(std::distance(stdfs::directory_iterator(directory_), {}), 1) << "call " << n;
  }
}

TEST_F(CheckpointTest, NeverSavesWhatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    auto c = contents(5);
    b_[14] = bad;
    try {
      write_checkpoint(FileSystem::real(), directory_, c);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kNumeric);
      EXPECT_NE(std::string(error.what()).find("tensor b "), std::string::npos) << error.what();
    }
    EXPECT_TRUE(stdfs::is_empty(directory_));
  }
}

TEST_F(CheckpointTest, FallsBackToTheNewestThatIsNotDamaged) {
  for (const std::int64_t step : {1, 2, 3}) save(FileSystem::real(), step);
  corrupt_byte(directory_ + "/step-00000003/model.safetensors", 200);
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  EXPECT_EQ(open_newest(FileSystem::real(), directory_, warn)->state().step, 2);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("step 3"), std::string::npos);
  for (const char* step : {"1", "2"}) {
    corrupt_byte(concat(directory_, "/step-0000000", step, "/optimizer.safetensors"), 300);
  }
  EXPECT_THROW(open_newest(FileSystem::real(), directory_, warn), Error);
  EXPECT_EQ(open_newest(FileSystem::real(), directory_ + "/none", warn), nullptr);
}

TEST_F(CheckpointTest, ACopiedOrRenamedDirectoryStillLoads) {
  const std::string path = save(FileSystem::real(), 1);
  stdfs::copy(path, directory_ + "/other name \xc3\xbc", stdfs::copy_options::recursive);
  CheckpointReader(FileSystem::real(), directory_ + "/other name \xc3\xbc").verify();
}

TEST_F(CheckpointTest, AsyncSaverStoresTheStepItWasGiven) {
  ThreadPool pool(2);
  std::vector<std::int64_t> saved;
  AsyncSaver saver(FileSystem::real(), directory_, Buffer(4 * 3 * (7 + 15), "staging"),
                   [&](std::int64_t step, std::int64_t) { saved.push_back(step); });
  for (const std::int64_t step : {1, 2, 3}) {
    saver.save(pool, contents(step));
    std::fill(a_.begin(), a_.end(), -1.0F);  // training goes on
    std::fill(b_.begin(), b_.end(), -1.0F);
  }
  saver.finish();
  EXPECT_EQ(saved, (std::vector<std::int64_t>{1, 2, 3}));
  const CheckpointReader reader(FileSystem::real(), directory_ + "/step-00000002");
  reader.verify();
  std::vector<float> a(7);
  reader.read(TensorPart::kWeight, "a.weight", a);
  EXPECT_EQ(a[6], 8.0F);
}

TEST_F(CheckpointTest, AsyncSaverReportsAFailureOnceAndGoesOn) {
  ThreadPool pool(1);
  FaultyFileSystem fs(FileSystem::real());
  fs.fail_at(4, EIO);
  AsyncSaver saver(fs, directory_, Buffer(4 * 3 * (7 + 15), "staging"),
                   [](std::int64_t, std::int64_t) {});
  saver.save(pool, contents(1));
  EXPECT_THROW(saver.finish(), Error);
  saver.save(pool, contents(2));
  saver.finish();
  EXPECT_EQ(list_checkpoints(FileSystem::real(), directory_), (std::vector<std::int64_t>{2}));
}

TEST(Retention, KeepsTheLastTheMilestonesAndTheOneInUse) {
  const std::vector<std::int64_t> steps = {100, 200, 300, 400, 500, 600};
  using Steps = std::vector<std::int64_t>;
  EXPECT_EQ(removable_checkpoints(steps, {2, 300}, -1), (Steps{100, 200, 400}));
  EXPECT_EQ(removable_checkpoints(steps, {1, 0}, 200), (Steps{100, 300, 400, 500}));
  EXPECT_EQ(removable_checkpoints(steps, {1, 0, {100, 400}}, -1), (Steps{200, 300, 500}));
  EXPECT_EQ(removable_checkpoints(steps, {0, 0}, -1), Steps{});
  EXPECT_EQ(removable_checkpoints({}, {1, 0}, -1), Steps{});
}

TEST_F(CheckpointTest, RetentionRemovesOnlyWhatItMay) {
  for (const std::int64_t step : {1, 2, 3, 4}) save(FileSystem::real(), step);
  EXPECT_EQ(apply_retention(FileSystem::real(), directory_, {1, 2}, 1),
            (std::vector<std::int64_t>{3}));
  EXPECT_EQ(list_checkpoints(FileSystem::real(), directory_), (std::vector<std::int64_t>{1, 2, 4}));
}

TEST(Paths, NamesGoBothWays) {
  EXPECT_EQ(paths::checkpoint_name(1000), "step-00001000");
  EXPECT_EQ(paths::step_of("step-00001000"), 1000);
  EXPECT_EQ(paths::step_of("step-123456789"), 123456789);
  for (const char* name : {"step-1000", "step-00001000.tmp-1", "step-0000100x", "step-", "other",
                           "step-99999999999999999999"}) {
    EXPECT_FALSE(paths::step_of(name).has_value()) << name;
  }
  EXPECT_TRUE(paths::is_unfinished("step-00001000.tmp-12-3"));
  EXPECT_FALSE(paths::is_unfinished("step-00001000"));
  EXPECT_FALSE(paths::is_unfinished("notes.tmp-1"));
}

TEST(TrainingState, RefusesWhatItDidNotWrite) {
  const std::string good = state_to_json({});
  EXPECT_EQ(state_to_json(state_from_json(good, "state.json")), good);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"step\": 0", "\"step\": 0.5"},
           {"\"step\": 0", "\"step\": -1"},
           {"\"step\"", "\"stepp\""},
           {"\"format\": 1", "\"format\": 2"},
           {"\"window_norms\": []", "\"window_norms\": [\"3ff0000000000000\"]"},
           {"\"window_norms\": []", "\"window_norms\": [1.0]"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_THROW(static_cast<void>(state_from_json(bad, "state.json")), Error) << bad;
  }
}

}  // namespace
}  // namespace lockstep
