#include "data/document_spans.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/scratch_directory.h"
#include "data/token_writer.h"
#include "io/compressed.h"

namespace lockstep {
namespace {

using Spans = std::vector<DocumentSpan>;
constexpr Vocabulary kTen = {10, 16};

class DocumentSpansTest : public testing::Test {
 protected:
  std::string tokens(const std::vector<std::uint32_t>& ids) {
    return directory_.write_values<std::uint32_t>("a.npy", ids);
  }
  Spans spans(const std::string& path) {
    return document_spans(fs_, TokenFile(fs_, path, TokenWidth::k32), 9, kTen);
  }
  std::string error_with_sidecar(const std::string& text) {
    const auto path = tokens({1, 9, 2, 9});
    CompressedWriter writer(fs_, sidecar_path(path), Compression::kGzip);
    writer.append(text);
    writer.commit();
    try {
      static_cast<void>(spans(path));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kData);
      return e.what();
    }
    return "no error";
  }

  ScratchDirectory directory_;
  FileSystem& fs_ = FileSystem::real();
};

TEST_F(DocumentSpansTest, CutsAfterEndOfTextAndDropsTheRest) {
  EXPECT_EQ(spans(tokens({1, 2, 9, 9, 3, 9, 4, 5})), (Spans{{0, 3}, {3, 4}, {4, 6}}));
  EXPECT_EQ(spans(tokens({1, 2})), Spans{});
}

TEST_F(DocumentSpansTest, ScansFilesLargerThanItsBuffer) {
  std::vector<std::uint32_t> ids(600000, 1);
  ids[299999] = ids[599999] = 9;
  EXPECT_EQ(spans(tokens(ids)), (Spans{{0, 300000}, {300000, 600000}}));
}

TEST_F(DocumentSpansTest, SidecarOfTheWriterAgreesWithTheScan) {
  for (const auto width : {TokenWidth::k32, TokenWidth::k16}) {
    const auto path = directory_.path(concat(name_of(width), ".npy"));
    TokenWriter writer(fs_, path, width);
    for (const std::vector<std::uint32_t>& document :
         std::vector<std::vector<std::uint32_t>>{{1, 2, 9}, {9}, {3, 4, 5, 9}}) {
      writer.add_document(document);
    }
    EXPECT_FALSE(fs_.exists(path));
    writer.finish();
    const TokenFile file(fs_, path, width);
    EXPECT_EQ(file.tokens(), 8U);
    const auto listed = document_spans(fs_, file, 9, kTen);
    EXPECT_EQ(listed, (Spans{{0, 3}, {3, 4}, {4, 8}}));
    fs_.remove(sidecar_path(path));
    EXPECT_EQ(document_spans(fs_, file, 9, kTen), listed);
  }
}

TEST_F(DocumentSpansTest, NarrowWriterRefusesWideIds) {
  TokenWriter writer(fs_, directory_.path("w.npy"), TokenWidth::k16);
  const std::uint32_t id = 65536;
  EXPECT_THROW(writer.add_document({&id, 1}), Error);
}

TEST_F(DocumentSpansTest, TakesMoreColumnsAndRefusesDamage) {
  EXPECT_EQ(error_with_sidecar("0,2,some-id,x\n2,4,y\r\n"), "no error");
  EXPECT_NE(error_with_sidecar("0,2\n1,4\n").find("row 2"), std::string::npos);
  EXPECT_NE(error_with_sidecar("0,5\n").find("a.npy has 4 tokens"), std::string::npos);
  for (const char* bad :
       {"start,end\n", "0,0\n", "0;2\n", "0,2x\n", "-1,2\n", "0,99999999999999999999\n", "\n"}) {
    EXPECT_NE(error_with_sidecar(bad), "no error") << bad;
  }
}

}  // namespace
}  // namespace lockstep
