#include "data/corpus.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/scratch_directory.h"

namespace lockstep {
namespace {

class CorpusTest : public testing::Test {
 protected:
  std::vector<std::string> texts(const std::string& path, const CorpusRules& rules = {}) {
    CorpusReader reader(fs_, path, rules);
    std::vector<std::string> out;
    RawDocument document;
    while (reader.next(document)) out.push_back(reader.text_of(document));
    return out;
  }
  std::string error(const std::string& name, const std::string& bytes,
                    const CorpusRules& rules = {}) {
    try {
      static_cast<void>(texts(directory_.write(name, bytes), rules));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInput);
      return e.what();
    }
    return "no error";
  }
  void write_compressed(const std::string& name, const std::string& text) {
    CompressedWriter writer(fs_, directory_.path(name), compression_of_name(name));
    writer.append(text);
    writer.commit();
  }

  using Texts = std::vector<std::string>;
  ScratchDirectory directory_;
  FileSystem& fs_ = FileSystem::real();
};

TEST_F(CorpusTest, ReadsJsonLinesPlainAndCompressed) {
  const std::string lines =
      "{\"text\": \"one\\u00e9\"}\n\n{\"id\": 1, \"text\": \"\"}\r\n{\"text\":\"3\"}";
  const Texts wanted = {"one\xc3\xa9", "", "3"};
  EXPECT_EQ(texts(directory_.write("a.jsonl", lines)), wanted);
  for (const char* name : {"b.jsonl.gz", "c.jsonl.zst"}) {
    write_compressed(name, lines);
    EXPECT_EQ(texts(directory_.path(name)), wanted);
  }
  EXPECT_EQ(texts(directory_.write("d.jsonl", "{\"body\":\"x\"}"), {.text_field = "body"}),
            Texts{"x"});
}

TEST_F(CorpusTest, ReadsTextWholeOrBySeparator) {
  const auto path = directory_.write("a.txt", "one\ntwo\n%\nthree\n%\n");
  EXPECT_EQ(texts(path), Texts{"one\ntwo\n%\nthree\n%\n"});
  EXPECT_EQ(texts(path, {.separator = "%"}), (Texts{"one\ntwo\n", "three\n"}));
  EXPECT_EQ(texts(directory_.write("empty.txt", "")), Texts{});
}

TEST_F(CorpusTest, NamesFileAndLineOfBadInput) {
  EXPECT_NE(error("a.jsonl", "{\"text\":\"x\"}\n{\"text\":}\n").find("a.jsonl line 2"),
            std::string::npos);
  EXPECT_NE(error("a.jsonl", "{\"txt\":\"x\"}\n").find("no field 'text'"), std::string::npos);
  EXPECT_NE(error("a.jsonl", "{\"text\":5}\n").find("is no text"), std::string::npos);
  EXPECT_NE(error("a.jsonl", "[1]\n"), "no error");
  EXPECT_NE(error("a.md", "x").find(".txt or .jsonl"), std::string::npos);
}

TEST_F(CorpusTest, RefusesOrRepairsInvalidUtf8) {
  EXPECT_NE(error("a.txt", "ok\n%\nb\xff\n", {.separator = "%"}).find("line 3"), std::string::npos);
  const CorpusRules repair = {.invalid_utf8 = InvalidUtf8::kReplace};
  EXPECT_EQ(texts(directory_.write("a.txt", "b\xff"), repair), Texts{"b\xef\xbf\xbd\n"});
  EXPECT_EQ(texts(directory_.write("a.jsonl", "{\"text\":\"b\xff\"}"), repair),
            Texts{"b\xef\xbf\xbd"});
}

TEST_F(CorpusTest, ListsADirectorySorted) {
  for (const char* name : {"d/b.txt", "d/a.jsonl.gz", "d/c/x.txt.zst", "d/readme.md"}) {
    directory_.write(name, "x");
  }
  EXPECT_EQ(corpus_files(fs_, directory_.path("d")),
            (Texts{directory_.path("d/a.jsonl.gz"), directory_.path("d/b.txt"),
                   directory_.path("d/c/x.txt.zst")}));
  directory_.write("e/readme.md", "x");
  EXPECT_THROW(static_cast<void>(corpus_files(fs_, directory_.path("e"))), Error);
}

TEST(HeldOut, TakesAboutTheFractionAndTheSameDocumentsAlways) {
  int held = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string text = "document " + std::to_string(i);
    held += is_held_out(text, 0.1, 1) ? 1 : 0;
    EXPECT_FALSE(is_held_out(text, 0, 1));
    EXPECT_TRUE(is_held_out(text, 1, 1));
    if (is_held_out(text, 0.05, 1)) {
      EXPECT_TRUE(is_held_out(text, 0.1, 1));
    }
  }
  EXPECT_NEAR(held, 1000, 150);  // 5 sigma of a binomial
  EXPECT_THROW(static_cast<void>(is_held_out("x", 1.5, 1)), Error);
}

}  // namespace
}  // namespace lockstep
