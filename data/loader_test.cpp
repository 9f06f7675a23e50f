#include "data/loader.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/fixed_instances.h"
#include "data/small_mix.h"

namespace lockstep {
namespace {

// Instances given in the test.
class GivenInstances final : public InstanceSource {
 public:
  explicit GivenInstances(std::vector<std::vector<std::uint32_t>> rows, std::size_t real)
      : rows_(std::move(rows)), real_(real) {}
  std::uint64_t instances() const override { return rows_.size(); }
  std::uint64_t sequence_length() const override { return rows_[0].size(); }
  std::size_t read(std::uint64_t id, std::span<std::uint32_t> tokens) const override {
    std::copy(rows_[id].begin(), rows_[id].end(), tokens.begin());
    return real_;
  }
  const std::vector<std::string>& labels() const override { return labels_; }
  std::size_t label_of(std::uint64_t) const override { return 0; }
  const std::string& fingerprint() const override { return labels_[0]; }

 private:
  std::vector<std::vector<std::uint32_t>> rows_;
  std::size_t real_;
  std::vector<std::string> labels_ = {"given"};
};

LeafData leaf_of(const std::vector<std::uint32_t>& row, const LeafRules& rules, std::size_t real) {
  const GivenInstances source({row}, real);
  LeafBuilder builder(source, rules);
  LeafData leaf;
  std::vector<std::uint64_t> by_label(1);
  const std::uint64_t id = 0;
  builder.build({&id, 1}, leaf, by_label);
  return leaf;
}

class LoaderTest : public testing::Test {
 protected:
  LoaderOptions options(std::size_t prefetch, std::uint64_t microbatch = 2) {
    return {.microbatch = microbatch, .rules = {true, 999, true}, .prefetch = prefetch};
  }
  std::vector<std::string> digests(Loader& loader, int steps) {
    std::vector<std::string> out;
    Batch batch;
    for (int i = 0; i < steps; ++i) {
      loader.next(batch);
      out.push_back(batch.digest);
    }
    return out;
  }

  SmallMix small_{{400, 333, 210}};
  DataIndex index_ = small_.index(16);
  FixedInstances source_{FileSystem::real(), index_, kSmallVocabulary};
  StepPlan plan_{FileSystem::real(), {OrderKind::kFeistel, 5, index_.instances(), 8, ""}};
};

TEST_F(LoaderTest, GivesTheInstancesOfThePlan) {
  Loader loader(source_, plan_, options(0));
  Batch batch;
  loader.next(batch);
  std::vector<std::uint64_t> wanted(8);
  plan_.entries(0, 0, wanted);
  ASSERT_EQ(batch.leaves.size(), 4U);
  EXPECT_EQ(batch.epoch, 1U);
  EXPECT_EQ(batch.real_tokens(), 8U * 16);
  EXPECT_EQ(batch.target_count(), 8U * 15);
  EXPECT_EQ(batch.tokens_by_label[0] + batch.tokens_by_label[1], 8U * 16);
  for (std::size_t i = 0; i < 8; ++i) {
    const LeafData& leaf = batch.leaves[i / 2];
    EXPECT_EQ(leaf.instances[i % 2], wanted[i]);
    std::vector<std::uint32_t> tokens(16);
    static_cast<void>(source_.read(wanted[i], tokens));
    for (std::size_t t = 0; t < 16; ++t) {
      EXPECT_EQ(leaf.tokens[i % 2 * 16 + t], static_cast<std::int32_t>(tokens[t]));
      EXPECT_EQ(leaf.targets[i % 2 * 16 + t],
                t == 15 ? kNoTarget : static_cast<std::int32_t>(tokens[t + 1]));
    }
  }
}

TEST_F(LoaderTest, PrefetchDepthChangesNothing) {
  Loader none(source_, plan_, options(0));
  const auto wanted = digests(none, 25);  // across epochs: 7 steps each
  for (const std::size_t depth : {1U, 2U, 3U, 64U}) {
    Loader loader(source_, plan_, options(depth));
    EXPECT_EQ(digests(loader, 25), wanted) << depth;
  }
}

TEST_F(LoaderTest, StartsAndSeeksAnywhere) {
  Loader none(source_, plan_, options(0));
  const auto wanted = digests(none, 20);
  for (const std::size_t depth : {0U, 1U, 4U}) {
    for (std::uint64_t start = 0; start < 20; ++start) {
      Loader loader(source_, plan_, options(depth), start);
      EXPECT_EQ(digests(loader, 1)[0], wanted[start]);
    }
    Loader loader(source_, plan_, options(depth));
    for (const std::uint64_t step : {13U, 2U, 2U, 19U, 0U}) {
      loader.seek(step);
      EXPECT_EQ(loader.step(), step);
      EXPECT_EQ(digests(loader, 1)[0], wanted[step]);
    }
  }
}

TEST_F(LoaderTest, DigestDoesNotDependOnMicrobatchOrRanks) {
  Loader none(source_, plan_, options(0));
  const auto wanted = digests(none, 3);
  for (const std::uint64_t microbatch : {1U, 4U, 8U}) {
    Loader loader(source_, plan_, options(2, microbatch));
    EXPECT_EQ(digests(loader, 3), wanted);
  }
  std::string rows;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    auto part = options(1);
    part.first_leaf = 2 * rank;
    part.leaf_count = 2;
    Loader loader(source_, plan_, part, 2);
    Batch batch;
    loader.next(batch);
    EXPECT_EQ(batch.digest, "");
    for (const LeafData& leaf : batch.leaves) rows += leaf.row_digests;
  }
  EXPECT_EQ(batch_digest(rows), wanted[2]);
}

TEST_F(LoaderTest, DigestSeesTokensAndMasks) {
  Loader masked(source_, plan_, options(0));
  auto open = options(0);
  open.rules.document_mask = false;
  Loader other(source_, plan_, open);
  EXPECT_NE(digests(masked, 1), digests(other, 1));
  const auto before = leaf_of({1, 2, 3}, {}, 3);
  EXPECT_NE(before.row_digests, leaf_of({1, 2, 4}, {}, 3).row_digests);
  EXPECT_NE(before.row_digests, leaf_of({1, 2, 3}, {}, 2).row_digests);
}

TEST_F(LoaderTest, ThrowsAtTheStepWhoseDataAreDamagedAndGoesOnAfterwards) {
  Loader none(source_, plan_, options(0));
  const auto wanted = digests(none, 7);
  const auto file = small_.directory_.path("b.npy");
  const std::string whole = read_file(FileSystem::real(), file, 1 << 20);
  std::string bad = whole;
  bad[4 * 100 + 2] = 1;  // token 100: id + 65536
  small_.directory_.write("b.npy", bad);
  for (const std::size_t depth : {0U, 3U}) {
    const FixedInstances source(FileSystem::real(), index_, kSmallVocabulary);
    Loader loader(source, plan_, options(depth));
    Batch batch;
    std::uint64_t failed = 99;
    for (std::uint64_t k = 0; k < 7 && failed == 99; ++k) {
      try {
        loader.next(batch);
        EXPECT_EQ(batch.digest, wanted[k]);
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kData);
        EXPECT_NE(std::string(e.what()).find("b.npy: token 100 (byte 400)"), std::string::npos);
        failed = k;
      }
    }
    ASSERT_LT(failed, 7U);
    EXPECT_EQ(loader.step(), failed);
    loader.seek(failed + 1);
    if (failed + 1 < 7) {
      EXPECT_EQ(digests(loader, 1)[0], wanted[failed + 1]);
    }
  }
}

TEST_F(LoaderTest, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(Loader(source_, plan_, options(0, 3)), Error);
  EXPECT_THROW(Loader(source_, plan_, options(0, 0)), Error);
  auto part = options(0);
  part.first_leaf = 4;
  EXPECT_THROW(Loader(source_, plan_, part), Error);
  part.first_leaf = 2;
  part.leaf_count = 3;
  EXPECT_THROW(Loader(source_, plan_, part), Error);
  const StepPlan other(FileSystem::real(), {OrderKind::kFeistel, 5, 12, 4, ""});
  EXPECT_THROW(Loader(source_, other, options(0)), Error);
}

TEST(LeafBuilder, CutsSegmentsAfterEndOfText) {
  const LeafRules rules = {.document_mask = true, .end_of_text = 9};
  const auto segments = [&](const std::vector<std::uint32_t>& row) {
    return leaf_of(row, rules, row.size()).segments;
  };
  using Segments = std::vector<std::int32_t>;
  EXPECT_EQ(segments({1, 2, 9, 3, 4}), (Segments{0, 0, 0, 1, 1}));
  EXPECT_EQ(segments({1, 2, 3, 4, 9}), (Segments{0, 0, 0, 0, 0}));  // ends exactly at the end
  EXPECT_EQ(segments({9, 9, 9}), (Segments{0, 1, 2}));
  EXPECT_EQ(segments({9, 1, 2}), (Segments{0, 1, 1}));
  EXPECT_EQ(segments({1, 2, 3}), (Segments{0, 0, 0}));  // no end of text at all
}

TEST(LeafBuilder, KeepsPaddingApartAndWithoutTargets) {
  const LeafRules rules = {.document_mask = true, .end_of_text = 9};
  for (const std::uint32_t pad : {0U, 9U}) {
    const auto leaf = leaf_of({1, 9, 2, 9, pad, pad}, rules, 4);
    EXPECT_EQ(leaf.segments, (std::vector<std::int32_t>{0, 0, 1, 1, 2, 2}));
    EXPECT_EQ(leaf.targets, (std::vector<std::int32_t>{9, 2, 9, -1, -1, -1}));
    EXPECT_EQ(leaf.target_count, 3U);
    EXPECT_EQ(leaf.real_tokens, 4U);
  }
  EXPECT_EQ(leaf_of({1, 2, 0}, rules, 2).segments, (std::vector<std::int32_t>{0, 0, 1}));
  EXPECT_EQ(leaf_of({0, 0}, rules, 0).target_count, 0U);
}

TEST(LeafBuilder, MasksAFilteredInstanceWhole) {
  const std::vector<std::uint32_t> constant(64, 5);
  const auto on = leaf_of(constant, {.filter = true}, 64);
  EXPECT_EQ(on.filtered[0], 1);
  EXPECT_EQ(on.target_count, 0U);
  EXPECT_EQ(on.real_tokens, 64U);
  EXPECT_EQ(on.targets, std::vector<std::int32_t>(64, kNoTarget));
  const auto off = leaf_of(constant, {.filter = false}, 64);
  EXPECT_EQ(off.filtered[0], 0);
  EXPECT_EQ(off.target_count, 63U);
}

}  // namespace
}  // namespace lockstep
