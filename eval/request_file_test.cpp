#include "eval/request_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "io/compressed.h"

namespace lockstep {
namespace {

class RequestFile : public testing::Test {
 protected:
  ~RequestFile() override { std::filesystem::remove(path_); }

  static std::string Line(int doc, int idx, const std::string& label, const std::string& context,
                          const std::string& continuation) {
    return concat("{\"doc_id\": ", doc, ", \"idx\": ", idx, ", \"label\": ", label,
                  ", \"request\": {\"context\": \"", context, "\", \"continuation\": \"",
                  continuation, "\"}}\n");
  }
  std::vector<FrozenDocument> Read(const std::string& text) {
    CompressedWriter writer(fs_, path_, Compression::kGzip);
    writer.append(text);
    writer.commit();
    return read_requests(fs_, path_);
  }
  std::string ErrorOf(const std::string& text) {
    try {
      static_cast<void>(Read(text));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return std::string(error.what()).substr(path_.size());
    }
    return "no error";
  }

  FileSystem& fs_ = FileSystem::real();
  std::string path_ =
      testing::TempDir() + "lockstep_requests_" + std::to_string(::getpid()) + ".jsonl.gz";
};

TEST_F(RequestFile, PutsChoicesAndTwinsTogether) {
  const auto documents =
      Read(Line(4, 0, "1", "c", " a") + Line(4, 1, "1", "c", " b") +
           Line(1000004, 0, "1", "A:", " a") + Line(1000004, 1, "1", "A:", " b"));
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(documents[0].id, 4U);
  EXPECT_EQ(documents[0].gold, 1U);
  EXPECT_TRUE(documents[0].has_twin);
  EXPECT_TRUE(documents[0].has_choices);
  ASSERT_EQ(documents[0].choices.size(), 2U);
  EXPECT_EQ(documents[0].choices[1].context, "c");
  EXPECT_EQ(documents[0].choices[1].continuation, " b");
  EXPECT_EQ(documents[0].choices[1].bare_context, "A:");
}

TEST_F(RequestFile, AContinuationWithoutANumberForALabelIsTheGoldOne) {
  for (const char* label : {"null", "\"42\""}) {
    const auto documents = Read(Line(0, 0, label, "c", "x"));
    EXPECT_FALSE(documents[0].has_choices);
    EXPECT_EQ(documents[0].gold, 0U);
  }
}

TEST_F(RequestFile, NamesLineAndField) {
  EXPECT_EQ(ErrorOf(""), ": no requests");
  EXPECT_EQ(ErrorOf("{}\n"), ":1: no field \"doc_id\"");
  EXPECT_EQ(ErrorOf(Line(0, 0, "0", "c", "x") + Line(0, 0, "0", "c", "x")),
            ":2: document 0, idx 0 came before");
  EXPECT_EQ(ErrorOf(Line(0, 1, "0", "c", "x")), ": document 0: a choice is missing");
  EXPECT_EQ(ErrorOf(Line(0, 0, "1", "c", "x")), ": document 0: label 1 of 1 choices");
  EXPECT_EQ(ErrorOf(Line(0, -1, "1", "c", "x")),
            ":1: field \"idx\": -1, want an integer from 0 on");
  EXPECT_EQ(ErrorOf("{\"doc_id\": 0, \"idx\": 0, \"request\": {\"context\": 1}}"),
            ":1: field \"request.context\": number, want text");
}

}  // namespace
}  // namespace lockstep
