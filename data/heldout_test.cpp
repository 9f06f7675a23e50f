#include "data/heldout.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/leaf_builder.h"
#include "data/scratch_directory.h"

namespace lockstep {
namespace {

class HeldoutTest : public testing::Test {
 protected:
  HeldoutTest() {
    directory_.write_values<std::uint32_t>("a.npy", std::vector<std::uint32_t>{1, 2, 9, 3, 9});
    directory_.write_values<std::uint32_t>("b.npy",
                                           std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6, 9, 7});
  }
  HeldoutDocuments open(std::uint64_t length) {
    const std::vector<MixEntry> mix = {{"wiki", "a.npy"}, {"code", "b.npy"}};
    return {FileSystem::real(), {directory_.path(), TokenWidth::k32, 9, 0, length, {10, 16}}, mix};
  }
  ScratchDirectory directory_;
};

TEST_F(HeldoutTest, PadsShortDocumentsAndCutsLongOnes) {
  const auto set = open(4);
  ASSERT_EQ(set.instances(), 3U);
  std::vector<std::uint32_t> tokens(4);
  EXPECT_EQ(set.read(0, tokens), 3U);
  EXPECT_EQ(tokens, (std::vector<std::uint32_t>{1, 2, 9, 0}));
  EXPECT_EQ(set.read(1, tokens), 2U);
  EXPECT_EQ(tokens, (std::vector<std::uint32_t>{3, 9, 0, 0}));
  EXPECT_EQ(set.read(2, tokens), 4U);
  EXPECT_EQ(tokens, (std::vector<std::uint32_t>{1, 2, 3, 4}));
  EXPECT_EQ(set.length_of(2), 7U);
  EXPECT_EQ(set.labels()[set.label_of(1)], "wiki");
  EXPECT_EQ(set.labels()[set.label_of(2)], "code");
  EXPECT_NE(set.fingerprint(), open(5).fingerprint());
}

TEST_F(HeldoutTest, GivesLeavesWithTargetsOnRealTokensOnly) {
  const auto set = open(4);
  LeafBuilder builder(set, {});
  LeafData leaf;
  std::vector<std::uint64_t> by_label(2);
  builder.build(std::vector<std::uint64_t>{0, 1, 2}, leaf, by_label);
  EXPECT_EQ(leaf.targets, (std::vector<std::int32_t>{2, 9, -1, -1, 9, -1, -1, -1, 2, 3, 4, -1}));
  EXPECT_EQ(leaf.target_count, 6U);
  EXPECT_EQ(by_label, (std::vector<std::uint64_t>{5, 4}));
}

TEST_F(HeldoutTest, RefusesTextWithoutADocument) {
  directory_.write_values<std::uint32_t>("a.npy", std::vector<std::uint32_t>{1, 2});
  directory_.write_values<std::uint32_t>("b.npy", std::vector<std::uint32_t>{1});
  EXPECT_THROW(static_cast<void>(open(4)), Error);
}

}  // namespace
}  // namespace lockstep
