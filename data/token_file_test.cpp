#include "data/token_file.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/error.h"
#include "data/scratch_directory.h"

namespace lockstep {
namespace {

constexpr Vocabulary kOlmo = {100278, 100352};

class TokenFileTest : public testing::Test {
 protected:
  std::string raw(const std::vector<std::uint32_t>& ids) {
    return directory_.write_values<std::uint32_t>("raw.npy", ids);
  }
  // The kind and text of what opening (and reading all) throws.
  std::pair<ErrorKind, std::string> error(const std::string& path, TokenWidth width,
                                          std::optional<std::uint64_t> wanted = std::nullopt) {
    try {
      const TokenFile file(fs_, path, width, wanted);
      std::vector<std::uint32_t> out(file.tokens());
      file.read(0, out, kOlmo);
    } catch (const Error& e) {
      return {e.kind(), e.what()};
    }
    return {ErrorKind::kBug, "no error"};
  }

  ScratchDirectory directory_;
  FileSystem& fs_ = FileSystem::real();
};

std::string npy(const std::string& descr, std::size_t count, const std::string& payload) {
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" +
                     std::to_string(count) + ",), }";
  dict.append(63 - (10 + dict.size()) % 64, ' ');
  dict += '\n';
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\0';
  out += static_cast<char>(dict.size() % 256);
  out += static_cast<char>(dict.size() / 256);
  return out + dict + payload;
}

TEST_F(TokenFileTest, ReadsHeaderless32BitTokensAnywhere) {
  const TokenFile file(fs_, raw({5, 100277, 7, 8}), TokenWidth::k32);
  EXPECT_EQ(file.tokens(), 4U);
  std::vector<std::uint32_t> out(2);
  file.read(1, out, kOlmo);
  EXPECT_EQ(out, (std::vector<std::uint32_t>{100277, 7}));
}

TEST_F(TokenFileTest, Reads16BitTokensWhereDeclared) {
  const std::vector<std::uint16_t> ids = {1, 65535, 3, 4, 5};
  const TokenFile file(fs_, directory_.write_values<std::uint16_t>("a.npy", ids), TokenWidth::k16);
  std::vector<std::uint32_t> out(4);
  file.read(1, out, kOlmo);
  EXPECT_EQ(out, (std::vector<std::uint32_t>{65535, 3, 4, 5}));
}

TEST_F(TokenFileTest, NeverReadsARealNumPyHeaderAsTokens) {
  const std::vector<std::uint16_t> ids = {9, 8, 7};
  const std::string payload(reinterpret_cast<const char*>(ids.data()), 6);
  const auto path = directory_.write("real.npy", npy("<u2", 3, payload));
  const TokenFile file(fs_, path, TokenWidth::k32);
  EXPECT_EQ(file.tokens(), 3U);
  EXPECT_EQ(file.width(), TokenWidth::k16);
  std::vector<std::uint32_t> out(3);
  file.read(0, out, kOlmo);
  EXPECT_EQ(out, (std::vector<std::uint32_t>{9, 8, 7}));
}

TEST_F(TokenFileTest, RefusesFilesThatAreNoTokens) {
  EXPECT_EQ(error(directory_.path("missing.npy"), TokenWidth::k32).first, ErrorKind::kInput);
  const auto empty = error(directory_.write("empty.npy", ""), TokenWidth::k32);
  EXPECT_EQ(empty.first, ErrorKind::kData);
  EXPECT_NE(empty.second.find("0 bytes"), std::string::npos) << empty.second;
  for (const std::size_t size : {1U, 2U, 3U, 7U, 4001U}) {
    const auto odd = error(directory_.write("odd.npy", std::string(size, '\0')), TokenWidth::k32);
    EXPECT_EQ(odd.first, ErrorKind::kData);
    EXPECT_NE(odd.second.find(std::to_string(size) + " bytes"), std::string::npos) << odd.second;
  }
  const std::string whole = npy("<u4", 2, std::string(8, '\0'));
  for (std::size_t size = 6; size < whole.size(); ++size) {
    const auto cut = error(directory_.write("cut.npy", whole.substr(0, size)), TokenWidth::k32);
    EXPECT_NE(cut.first, ErrorKind::kBug) << size << cut.second;
  }
  EXPECT_NE(
      error(directory_.write("f4.npy", npy("<f4", 2, std::string(8, '\0'))), TokenWidth::k32).first,
      ErrorKind::kBug);
}

TEST_F(TokenFileTest, RefusesAFileThatChangedSize) {
  const auto path = raw({1, 2, 3});
  EXPECT_EQ(error(path, TokenWidth::k32, 3).second, "no error");
  const auto shorter = error(path, TokenWidth::k32, 4);
  EXPECT_EQ(shorter.first, ErrorKind::kData);
  EXPECT_NE(shorter.second.find("3 tokens (12 bytes) where 4"), std::string::npos);
  EXPECT_NE(shorter.second.find("truncated"), std::string::npos);
  EXPECT_NE(error(path, TokenWidth::k32, 2).second.find("extended"), std::string::npos);
}

TEST_F(TokenFileTest, ReportsAFileThatShrinksWhileOpen) {
  const TokenFile file(fs_, raw({1, 2, 3, 4}), TokenWidth::k32);
  std::filesystem::resize_file(file.path(), 8);
  std::vector<std::uint32_t> out(4);
  EXPECT_THROW(file.read(0, out, kOlmo), Error);
}

TEST_F(TokenFileTest, NamesFileOffsetAndIdOutsideTheVocabulary) {
  const auto padding = error(raw({1, 2, 100278}), TokenWidth::k32);
  EXPECT_EQ(padding.first, ErrorKind::kData);
  for (const char* part : {"raw.npy", "token 2", "byte 8", "100278", "padding rows"}) {
    EXPECT_NE(padding.second.find(part), std::string::npos) << part << ": " << padding.second;
  }
  const auto outside = error(raw({1, 4000000000U, 100278}), TokenWidth::k32);
  EXPECT_NE(outside.second.find("token 1 (byte 4) is id 4000000000, outside"), std::string::npos)
      << outside.second;
}

}  // namespace
}  // namespace lockstep
