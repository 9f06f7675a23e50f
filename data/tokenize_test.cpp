#include "data/tokenize.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "data/document_spans.h"
#include "data/mix.h"
#include "data/scratch_directory.h"

namespace lockstep {
namespace {

// One token a byte; the end-of-text is 256.
void bytes_of(std::string_view text, int, std::vector<std::uint32_t>& ids) {
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
}

class TokenizeTest : public testing::Test {
 protected:
  TokenizeTest() {
    std::string lines;
    for (int i = 0; i < 500; ++i) {
      lines += "{\"text\":\"" + std::string(static_cast<std::size_t>(i % 37), 'a') +
               std::to_string(i) + "\"}\n";
    }
    inputs_ = {
        {"json", {directory_.write("in/a.jsonl", lines + "{\"text\":\"\"}\n")}},
        {"text",
         {directory_.write("in/b.txt", "hello\n"), directory_.write("in/c.txt", "world\n")}}};
    spec_.end_of_text = 256;
    spec_.tokenizer_fingerprint = "bytes";
    spec_.heldout_fraction = 0.2;
    spec_.max_file_tokens = 4000;
  }
  std::vector<TokenizedLabel> run(const std::string& output, int threads = 1) {
    spec_.output_directory = directory_.path(output);
    ThreadPool pool(threads);
    return tokenize_corpus(fs_, spec_, inputs_, bytes_of, pool,
                           [this](const TokenizeProgress& p) { last_ = p; });
  }
  // Every file below a directory: name and bytes.
  std::map<std::string, std::string> files(const std::string& output) {
    std::map<std::string, std::string> out;
    const std::filesystem::path root = directory_.path(output);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (!entry.is_regular_file()) continue;
      out[std::filesystem::relative(entry.path(), root).string()] =
          read_file(fs_, entry.path().string(), 1 << 24);
    }
    return out;
  }

  ScratchDirectory directory_;
  FileSystem& fs_ = FileSystem::real();
  std::vector<CorpusInput> inputs_;
  TokenizeSpec spec_;
  TokenizeProgress last_;
};

TEST_F(TokenizeTest, WritesEveryDocumentOnceInOrderWithEndOfText) {
  const auto labels = run("out");
  ASSERT_EQ(labels.size(), 2U);
  EXPECT_EQ(labels[0].train.documents + labels[0].heldout.documents, 500U);
  EXPECT_EQ(labels[0].empty_documents, 1U);
  EXPECT_GT(labels[0].heldout.documents, 50U);
  EXPECT_GT(labels[0].train.files.size(), 1U);
  int last = -1;
  std::uint64_t documents = 0;
  for (const auto& name : labels[0].train.files) {
    const TokenFile file(fs_, directory_.path("out/" + name), TokenWidth::k32);
    EXPECT_LE(file.tokens(), 4000U);
    for (const DocumentSpan& span : document_spans(fs_, file, 256, {257, 257})) {
      std::vector<std::uint32_t> ids(span.end - span.begin);
      file.read(span.begin, ids, {257, 257});
      EXPECT_EQ(ids.back(), 256U);
      std::string text(ids.begin(), ids.end() - 1);
      const int number = std::stoi(text.substr(text.find_first_not_of('a')));
      EXPECT_GT(number, last);
      EXPECT_FALSE(is_held_out(text, 0.2, 0));
      last = number;
      ++documents;
    }
  }
  EXPECT_EQ(documents, labels[0].train.documents);
}

TEST_F(TokenizeTest, WritesManifestsAndSummary) {
  const auto labels = run("out");
  const auto mix = read_mix(fs_, directory_.path("out/mix.txt"), "");
  ASSERT_EQ(mix.size(), labels[0].train.files.size() + labels[1].train.files.size());
  EXPECT_EQ(mix[0].label, "json");
  EXPECT_EQ(mix[0].path, "json/train-00000.npy");
  EXPECT_EQ(read_mix(fs_, directory_.path("out/heldout.txt"), "")[0].path,
            "json/heldout-00000.npy");
  const Json summary =
      parse_json(read_file(fs_, directory_.path("out/dataset.json"), 1 << 20), "s");
  EXPECT_EQ(summary.at("tokenizer"), "bytes");
  EXPECT_EQ(summary.at("end_of_text"), 256);
  EXPECT_EQ(summary.at("labels")[0].at("train").at("tokens"), labels[0].train.tokens);
  EXPECT_EQ(labels[0].train.tokens, labels[0].train.text_bytes + labels[0].train.documents);
  EXPECT_EQ(last_.bytes_done, last_.bytes_total);
  EXPECT_EQ(last_.documents, 502U);
}

TEST_F(TokenizeTest, GivesTheSameBytesForAnyNumberOfThreads) {
  static_cast<void>(run("one", 1));
  const auto wanted = files("one");
  EXPECT_GT(wanted.size(), 5U);
  for (const int threads : {2, 3, 8}) {
    const std::string name = "threads" + std::to_string(threads);
    static_cast<void>(run(name, threads));
    EXPECT_EQ(files(name), wanted);
  }
}

TEST_F(TokenizeTest, WritesNarrowTokensWhereAsked) {
  spec_.width = TokenWidth::k16;
  const auto labels = run("out");
  const TokenFile file(fs_, directory_.path("out/" + labels[0].train.files[0]), TokenWidth::k16);
  EXPECT_EQ(file.width(), TokenWidth::k16);
  EXPECT_EQ(document_spans(fs_, file, 256, {257, 257})[0].begin, 0U);
}

TEST_F(TokenizeTest, RefusesWhatWouldMixOrEscape) {
  static_cast<void>(run("out"));
  EXPECT_THROW(static_cast<void>(run("out")), Error);
  for (const char* label : {"", "..", "a/b", "a,b", "text"}) {
    inputs_[0].label = label;
    EXPECT_THROW(static_cast<void>(run("other")), Error) << label;
  }
}

TEST_F(TokenizeTest, LeavesNoSummaryWhenADocumentIsRefused) {
  inputs_[1].files[1] = directory_.write("in/c.txt", "bad\xff");
  EXPECT_THROW(static_cast<void>(run("out", 2)), Error);
  EXPECT_FALSE(fs_.exists(directory_.path("out/dataset.json")));
  EXPECT_FALSE(fs_.exists(directory_.path("out/mix.txt")));
}

TEST_F(TokenizeTest, RefusesInputWithoutText) {
  inputs_ = {{"json", {directory_.write("in/e.jsonl", "{\"text\":\"\"}\n")}}};
  EXPECT_THROW(static_cast<void>(run("out")), Error);
}

}  // namespace
}  // namespace lockstep
