#include "data/packed_instances.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "data/best_fit.h"
#include "data/leaf_builder.h"
#include "data/scratch_directory.h"

namespace lockstep {
namespace {

using Bins = std::vector<std::vector<std::uint32_t>>;

TEST(BestFit, TakesTheTightestOpenBinAndOpensNewOnesInOrder) {
  // 7 | 6 | 3 fits exactly behind 7 | 3 behind 6 | 1 behind 6+3.
  EXPECT_EQ(pack_best_fit(std::vector<std::uint32_t>{3, 7, 6, 3, 1}, 10),
            (Bins{{1, 0}, {2, 3, 4}}));
  // Among bins of equal space the one that has had it longest.
  EXPECT_EQ(pack_best_fit(std::vector<std::uint32_t>{6, 6, 6, 2, 2}, 8),
            (Bins{{0, 3}, {1, 4}, {2}}));
  EXPECT_TRUE(pack_best_fit({}, 8).empty());
}

TEST(BestFit, PlacesEveryItemOnceWithinTheCapacity) {
  std::mt19937 random(3);
  std::vector<std::uint32_t> lengths(2000);
  for (auto& length : lengths) length = 1 + static_cast<std::uint32_t>(random() % 100);
  const auto total = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  std::set<std::uint32_t> seen;
  const auto bins = pack_best_fit(lengths, 100);
  for (const auto& bin : bins) {
    std::uint64_t sum = 0;
    for (const auto item : bin) {
      sum += lengths[item];
      EXPECT_TRUE(seen.insert(item).second);
    }
    EXPECT_LE(sum, 100U);
  }
  EXPECT_EQ(seen.size(), lengths.size());
  EXPECT_LT(static_cast<double>(bins.size()), 1.03 * static_cast<double>(total) / 100);
}

class PackedInstancesTest : public testing::Test {
 protected:
  static constexpr Vocabulary kVocabulary = {100, 128};
  // A file of documents of the given lengths (end-of-text 99 included); ids tell the document.
  void add(const std::string& label, const std::vector<std::size_t>& lengths) {
    std::vector<std::uint32_t> ids;
    for (const std::size_t length : lengths) {
      ids.insert(ids.end(), length - 1, next_id_++);
      ids.push_back(99);
    }
    const std::string name = "f" + std::to_string(mix_.size()) + ".npy";
    directory_.write_values<std::uint32_t>(name, ids);
    mix_.push_back({label, name});
  }
  DataIndex index(std::uint64_t length) {
    return DataIndex::build(fs_, {length, TokenWidth::k32, "t", directory_.path()}, mix_, pool_);
  }
  PackingSpec spec_ = {.end_of_text = 99, .padding = 98, .vocabulary = kVocabulary};

  ScratchDirectory directory_;
  FileSystem& fs_ = FileSystem::real();
  ThreadPool pool_{2};
  std::vector<MixEntry> mix_;
  std::uint32_t next_id_ = 1;
};

// Public report: a document longer than the row clogged the packer and gave rows of padding only.
TEST_F(PackedInstancesTest, CutsALongDocumentAndPacksTheShortOnes) {
  add("a", {3, 50, 4, 2});
  const auto files = index(8);
  const PackedInstances packed(fs_, files, spec_, pool_);
  ASSERT_EQ(packed.instances(), 3U);
  EXPECT_EQ(packed.lost_tokens(), 42U);
  std::vector<std::uint32_t> row(8);
  EXPECT_EQ(packed.read(0, row), 8U);
  EXPECT_EQ(row, std::vector<std::uint32_t>(8, 2));
  EXPECT_EQ(packed.read(1, row), 7U);
  EXPECT_EQ(row, (std::vector<std::uint32_t>{3, 3, 3, 99, 1, 1, 99, 98}));
  EXPECT_EQ(packed.read(2, row), 2U);
  EXPECT_EQ(row, (std::vector<std::uint32_t>{4, 99, 98, 98, 98, 98, 98, 98}));
}

TEST_F(PackedInstancesTest, KeepsDocumentsApartInTheLeaf) {
  add("a", {3, 4});
  const auto files = index(8);
  const PackedInstances packed(fs_, files, spec_, pool_);
  LeafBuilder builder(packed, {.document_mask = true, .end_of_text = 99});
  LeafData leaf;
  std::vector<std::uint64_t> by_label(1);
  builder.build(std::vector<std::uint64_t>{0}, leaf, by_label);
  EXPECT_EQ(leaf.segments, (std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1, 2}));
  EXPECT_EQ(leaf.targets, (std::vector<std::int32_t>{2, 2, 99, 1, 1, 99, -1, -1}));
}

TEST_F(PackedInstancesTest, PacksGroupsOfPermutedFilesByThemselves) {
  for (int i = 0; i < 10; ++i) add(i < 5 ? "a" : "b", {4});
  const auto files = index(8);
  const PackedInstances packed(fs_, files, spec_, pool_);
  // Files in the order 8 7 5 9 2 3 6 1 | 4 0.
  ASSERT_EQ(packed.instances(), 5U);
  std::vector<std::uint32_t> row(8);
  const std::vector<std::uint32_t> firsts = {9, 6, 3, 7, 5};
  for (std::uint64_t id = 0; id < 5; ++id) {
    static_cast<void>(packed.read(id, row));
    EXPECT_EQ(row[0], firsts[id]);
  }
  EXPECT_EQ(packed.labels()[packed.label_of(0)], "b");
  EXPECT_EQ(packed.labels()[packed.label_of(2)], "a");
  ThreadPool one(1);
  EXPECT_EQ(PackedInstances(fs_, files, spec_, one).fingerprint(), packed.fingerprint());
}

TEST_F(PackedInstancesTest, RefusesFilesWithoutADocument) {
  directory_.write_values<std::uint32_t>("f0.npy", std::vector<std::uint32_t>{1, 2, 3});
  mix_.push_back({"a", "f0.npy"});
  const auto files = index(8);
  EXPECT_THROW(PackedInstances(fs_, files, spec_, pool_), Error);
}

}  // namespace
}  // namespace lockstep
