#include "data/order_cache.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "data/scratch_directory.h"

namespace lockstep {
namespace {

class OrderCacheTest : public testing::Test {
 protected:
  std::vector<std::uint32_t> values() {
    const auto indices = ShuffledIndices::make(FileSystem::real(), spec_);
    return {indices.values().begin(), indices.values().end()};
  }
  std::string data_path() { return directory_.path(order_cache_name(spec_)); }
  std::string contents(const std::string& path) {
    return read_file(FileSystem::real(), path, 1 << 20);
  }
  std::string error() {
    try {
      static_cast<void>(values());
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kData);
      return e.what();
    }
    return "";
  }

  ScratchDirectory directory_;
  OrderSpec spec_ = {OrderKind::kOlmoCore, 34521, 1, 1000, directory_.path()};
};

TEST_F(OrderCacheTest, WritesRawValuesAndReadsThemBack) {
  const auto built = values();
  EXPECT_EQ(order_cache_name(spec_), "global_indices_dataset_size1000_epoch1_seed34521_v1.npy");
  ASSERT_EQ(contents(data_path()).size(), 4000U);
  const auto stamp = std::filesystem::last_write_time(data_path());
  EXPECT_EQ(values(), built);
  EXPECT_EQ(std::filesystem::last_write_time(data_path()), stamp);
}

TEST_F(OrderCacheTest, RefusesADamagedFile) {
  static_cast<void>(values());
  const std::string whole = contents(data_path());
  std::string flipped = whole;
  flipped[2001] = static_cast<char>(flipped[2001] ^ 4);
  for (const std::string& bad : {flipped, whole.substr(0, 3999), whole + "1234"}) {
    directory_.write(order_cache_name(spec_), bad);
    EXPECT_NE(error().find(order_cache_name(spec_)), std::string::npos) << error();
    EXPECT_NE(error().find("delete it"), std::string::npos) << error();
  }
}

TEST_F(OrderCacheTest, RefusesAnotherOrdersFileUnderThisName) {
  static_cast<void>(values());
  const std::string path = data_path();
  spec_.seed = 5;
  std::filesystem::rename(path, data_path());
  std::filesystem::rename(path + ".json", data_path() + ".json");
  EXPECT_NE(error().find("seed 34521"), std::string::npos) << error();
}

TEST_F(OrderCacheTest, BuildsAgainWhatWasNeverFinished) {
  const auto built = values();
  directory_.write(order_cache_name(spec_), "torn");
  std::filesystem::remove(data_path() + ".json");
  EXPECT_EQ(values(), built);
  EXPECT_EQ(contents(data_path()).size(), 4000U);
}

}  // namespace
}  // namespace lockstep
