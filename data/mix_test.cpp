#include "data/mix.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"

namespace lockstep {
namespace {

std::string error(std::string_view text, std::string_view tokenizer = "t") {
  try {
    static_cast<void>(parse_mix(text, "a.txt", tokenizer));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    return e.what();
  }
  return "no error";
}

TEST(Mix, ExpandsTheTokenizerAndSkipsBlankAndCommentLines) {
  const auto mix =
      parse_mix("# head\n\nwiki,a/{TOKENIZER}/0.npy\r\n  code , b/1.npy\n", "m", "x/y");
  ASSERT_EQ(mix.size(), 2U);
  EXPECT_EQ(mix[0].label, "wiki");
  EXPECT_EQ(mix[0].path, "a/x/y/0.npy");
  EXPECT_EQ(mix[1].label, "code");
  EXPECT_EQ(mix[1].path, "b/1.npy");
}

TEST(Mix, NamesTheLineThatIsWrong) {
  EXPECT_NE(error("a,b.npy\nnocomma\n").find("a.txt line 2"), std::string::npos);
  EXPECT_NE(error("a,\n").find("line 1"), std::string::npos);
  EXPECT_NE(error(",b\n").find("line 1"), std::string::npos);
  EXPECT_NE(error("a,/etc/passwd\n").find("base directory"), std::string::npos);
  EXPECT_NE(error("a,x/../../b\n").find("base directory"), std::string::npos);
  EXPECT_NE(error("a,b\nc,b\n").find("in line 1 already"), std::string::npos);
  EXPECT_NE(error("a,{TOKENIZER}/b\n", "").find("{TOKENIZER}"), std::string::npos);
  EXPECT_NE(error("# nothing\n").find("no file"), std::string::npos);
}

TEST(Mix, ReadsTheOfficialManifests) {
  const std::string directory = std::string(LOCKSTEP_SOURCE_DIR) + "/../shared/data/mixes/";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << directory << " is not there";
  FileSystem& fs = FileSystem::real();
  const auto stage1 = read_mix(fs, directory + "OLMo-mix-0625-official.txt", "d");
  EXPECT_EQ(stage1.size(), 1016U);
  EXPECT_EQ(stage1[0].path,
            "preprocessed/dolma3-0625/v0.1-official/d/common_crawl/adult_content/000000.npy");
  EXPECT_EQ(read_mix(fs, directory + "OLMo-midtraining-mix-0625-100B.txt", "d").size(), 11933U);
  EXPECT_EQ(read_mix(fs, directory + "v3-small-ppl-validation.txt", "d").size(), 11U);
}

}  // namespace
}  // namespace lockstep
