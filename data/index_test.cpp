#include "data/index.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/fixed_instances.h"
#include "data/small_mix.h"

namespace lockstep {
namespace {

template <class Action>
std::string error(const Action& action, ErrorKind kind = ErrorKind::kData) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "no error";
}

TEST(DataIndex, CutsEachFileIntoWholeInstances) {
  SmallMix small({100, 7, 24, 3, 8});
  const auto index = small.index(8);
  EXPECT_EQ(index.instances(), 12U + 0 + 3 + 0 + 1);
  EXPECT_EQ(index.tokens(), 142U);
  EXPECT_EQ(index.place(0).file, 0U);
  EXPECT_EQ(index.place(11).first_token, 88U);
  EXPECT_EQ(index.place(12).file, 2U);
  EXPECT_EQ(index.place(14).first_token, 16U);
  EXPECT_EQ(index.place(15).file, 4U);
  EXPECT_THROW(static_cast<void>(index.place(16)), Error);
}

// Public report: a bounds check dropped whole tails of usable tokens.
TEST(DataIndex, UsesEveryTokenOfAFileThatDividesEvenly) {
  SmallMix small({96});
  const auto index = small.index(8);
  ASSERT_EQ(index.instances(), 12U);
  const FixedInstances source(FileSystem::real(), index, kSmallVocabulary);
  std::vector<std::uint32_t> tokens(8);
  for (std::uint64_t id = 0; id < 12; ++id) {
    EXPECT_EQ(source.read(id, tokens), 8U);
    for (std::uint32_t t = 0; t < 8; ++t) EXPECT_EQ(tokens[t], 8 * id + t);
  }
}

TEST(FixedInstances, RefusesDataWithoutOneInstance) {
  SmallMix small({7, 3});
  const auto index = small.index(8);
  const auto text =
      error([&] { const FixedInstances source(FileSystem::real(), index, kSmallVocabulary); });
  EXPECT_NE(text.find("2 files with 10 tokens hold no instance of 8"), std::string::npos) << text;
}

TEST(DataIndex, SavesAndLoadsTheSame) {
  SmallMix small({100, 20});
  const auto path = small.directory_.path("index.json");
  const auto index = small.index(8, ContentDigest::kYes);
  index.save(FileSystem::real(), path);
  const auto loaded = DataIndex::load(FileSystem::real(), path, small.directory_.path());
  EXPECT_EQ(loaded.fingerprint(), index.fingerprint());
  EXPECT_EQ(loaded.files(), index.files());
  EXPECT_TRUE(index_differences(loaded, index).empty());
}

TEST(DataIndex, RefusesADamagedIndex) {
  SmallMix small({100, 20});
  const auto path = small.directory_.path("index.json");
  FileSystem& fs = FileSystem::real();
  small.index(8).save(fs, path);
  const std::string whole = read_file(fs, path, 1 << 20);
  const auto load = [&] { static_cast<void>(DataIndex::load(fs, path, ".")); };
  std::string changed = whole;
  changed.replace(changed.find("100"), 3, "108");
  small.directory_.write("index.json", changed);
  EXPECT_NE(error(load).find("damaged"), std::string::npos);
  // Public report: a count read under a wrong key became 0.
  changed = whole;
  changed.replace(changed.find("n_tokens"), 8, "num_toks");
  small.directory_.write("index.json", changed);
  EXPECT_NE(error(load).find("'n_tokens' is missing"), std::string::npos);
  small.directory_.write("index.json", whole.substr(0, whole.size() / 2));
  EXPECT_NE(error(load, ErrorKind::kInput), "no error");
}

TEST(DataIndex, OpenListsWhatDiffersFromTheSavedOne) {
  SmallMix small({100, 20});
  FileSystem& fs = FileSystem::real();
  const auto path = small.directory_.path("index.json");
  const auto open = [&](const IndexSpec& spec) {
    return open_index(fs, spec, small.mix_, path, small.pool_).fingerprint();
  };
  const auto first = open(small.spec(8));
  EXPECT_EQ(open(small.spec(8)), first);
  EXPECT_NE(error([&] { open(small.spec(4)); }).find("sequence length 8 -> 4"), std::string::npos);
  auto spec = small.spec(8);
  spec.tokenizer = "other";
  EXPECT_NE(error([&] { open(spec); }).find("tokenizer tok -> other"), std::string::npos);
  small.directory_.write("b.npy", std::string(40, '\0'));
  EXPECT_NE(error([&] { open(small.spec(8)); }).find("b.npy: 20 -> 10 tokens"), std::string::npos);
  std::swap(small.mix_[0], small.mix_[1]);
  EXPECT_NE(error([&] { open(small.spec(8)); }).find("file 0: a.npy -> b.npy"), std::string::npos);
}

TEST(DataIndex, OpenComparesContentsWhenTheyWereRecorded) {
  SmallMix small({100});
  FileSystem& fs = FileSystem::real();
  const auto path = small.directory_.path("index.json");
  small.index(8, ContentDigest::kYes).save(fs, path);
  small.directory_.write("a.npy", std::string(400, '\0'));
  const auto text = error(
      [&] { static_cast<void>(open_index(fs, small.spec(8), small.mix_, path, small.pool_)); });
  EXPECT_NE(text.find("a.npy: other tokens than before"), std::string::npos) << text;
}

TEST(FixedInstances, KnowsLabelsAndRefusesTokenFilesThatChanged) {
  SmallMix small({16, 16, 16});
  const auto index = small.index(8);
  const FixedInstances source(FileSystem::real(), index, kSmallVocabulary);
  EXPECT_EQ(source.labels(), (std::vector<std::string>{"even", "odd"}));
  EXPECT_EQ(source.label_of(1), 0U);
  EXPECT_EQ(source.label_of(2), 1U);
  EXPECT_EQ(source.label_of(5), 0U);
  small.directory_.write("b.npy", std::string(60, '\0'));
  std::vector<std::uint32_t> tokens(8);
  const auto text = error([&] { static_cast<void>(source.read(2, tokens)); });
  EXPECT_NE(text.find("15 tokens (60 bytes) where 16"), std::string::npos) << text;
}

TEST(TokenFilePool, ReadsMoreFilesThanItKeepsOpen) {
  SmallMix small({8, 8, 8, 8, 8});
  const auto index = small.index(8);
  TokenFilePool pool(FileSystem::real(), index, 2);
  std::vector<std::uint32_t> tokens(8);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < 5; ++i) {
      pool.file(i)->read(0, tokens, kSmallVocabulary);
      EXPECT_EQ(tokens[0], 8 * i);
    }
  }
}

}  // namespace
}  // namespace lockstep
