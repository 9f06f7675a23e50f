#include "io/compressed.h"

#include "io/test_directory.h"

namespace lockstep {
namespace {

class Compressed : public TestDirectory {
 protected:
  static std::string sample(std::size_t lines) {
    std::string text;
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < lines; ++i) {
      state = state * 1664525U + 1013904223U;
      text += "line " + std::to_string(i) + " " + std::to_string(state) + "\n";
    }
    return text;
  }
  std::string pack(const std::string& name, std::string_view text) {
    CompressedWriter writer(fs_, path(name), compression_of_name(name));
    for (; !text.empty(); text.remove_prefix(std::min<std::size_t>(text.size(), 7777))) {
      writer.append(text.substr(0, 7777));
    }
    writer.commit();
    return path(name);
  }
  [[nodiscard]] std::string unpack(const std::string& name) const {
    return read_text(fs_, path(name), std::uint64_t{1} << 30);
  }
  static constexpr const char* kNames[] = {"t.csv", "t.csv.gz", "t.csv.zst"};
};

TEST_F(Compressed, RoundTripsAllForms) {
  for (const std::string name : kNames) {
    for (const auto& text : {std::string(), std::string("x"), sample(60'000)}) {
      pack(name, text);
      EXPECT_EQ(unpack(name), text) << name;
    }
    EXPECT_EQ(fs_.list(root_).size(), 1U);
    fs_.remove(path(name));
  }
}

TEST_F(Compressed, TheSameTextGivesTheSameBytes) {
  const auto text = sample(60'000);
  for (const std::string name : kNames) {
    pack(name, text);
    const auto once = read(name);
    CompressedWriter writer(fs_, path(name), compression_of_name(name));
    writer.append(text);
    writer.commit();
    EXPECT_EQ(read(name), once) << name;
    if (name != kNames[0]) {
      EXPECT_LT(once.size(), text.size());
    }
  }
}

TEST_F(Compressed, TheFirstBytesDecideNotTheName) {
  pack("t.gz", "text\n");
  fs_.rename(path("t.gz"), path("plain.txt"));
  EXPECT_EQ(unpack("plain.txt"), "text\n");
  write("u.gz", "not compressed");
  EXPECT_EQ(unpack("u.gz"), "not compressed");
}

TEST_F(Compressed, LinesComeOneByOne) {
  const auto text = sample(20'000) + "\n\nlast\r";
  for (const std::string name : kNames) {
    pack(name, text);
    LineReader reader(open_byte_source(fs_, path(name)));
    std::string line;
    std::string together;
    while (reader.next(line)) together += line + "\n";
    EXPECT_EQ(together, text + "\n");
    EXPECT_EQ(reader.line_number(), 20'003U);
    EXPECT_EQ(reader.source().position(), reader.source().file_size());
  }
}

TEST_F(Compressed, AnOverlongLineIsRefused) {
  write("t", "short\n" + std::string(100'000, 'x') + "\n");
  LineReader fits(open_byte_source(fs_, path("t")), 100'000);
  std::string line;
  EXPECT_TRUE(fits.next(line) && fits.next(line) && !fits.next(line));
  LineReader reader(open_byte_source(fs_, path("t")), 99'999);
  EXPECT_TRUE(reader.next(line));
  expect_error(
      ErrorKind::kData, [&] { (void)reader.next(line); }, path("t"), "line 2", "99999");
}

TEST_F(Compressed, JoinedStreamsAreOne) {
  for (const std::string name : {"t.gz", "t.zst"}) {
    pack(name, "one\n");
    const auto first = read(name);
    pack(name, "two\n");
    write(name, first + read(name));
    EXPECT_EQ(unpack(name), "one\ntwo\n");
  }
}

TEST_F(Compressed, EveryTruncationIsDamage) {
  for (const std::string name : {"t.gz", "t.zst"}) {
    pack(name, sample(6));
    const auto whole = read(name);
    for (std::size_t cut = 4; cut < whole.size(); ++cut) {
      write("cut", whole.substr(0, cut));
      expect_error(
          ErrorKind::kData, [&] { (void)unpack("cut"); }, path("cut"), "cut off",
          "byte " + std::to_string(cut));
    }
  }
}

TEST_F(Compressed, FlippedBytesAreNeverTakenForTheText) {
  const auto text = sample(10);
  for (const std::string name : {"t.gz", "t.zst"}) {
    pack(name, text);
    const auto whole = read(name);
    std::size_t refused = 0;
    for (std::size_t i = 4; i < whole.size(); ++i) {
      auto bad = whole;
      bad[i] = static_cast<char>(bad[i] ^ 0x10);
      write("bad", bad);
      try {
        EXPECT_EQ(unpack("bad"), text);  // a byte of gzip's time or system fields
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
        ++refused;
      }
    }
    EXPECT_GT(refused, whole.size() - 20);
  }
}

TEST_F(Compressed, TrailingGarbageIsDamage) {
  for (const std::string name : {"t.gz", "t.zst"}) {
    pack(name, "text");
    write(name, read(name) + "garbage");
    expect_error(
        ErrorKind::kData, [&] { (void)unpack(name); }, path(name));
  }
}

TEST_F(Compressed, BombsStopAtTheLimit) {
  for (const std::string name : {"t.gz", "t.zst"}) {
    pack(name, std::string(5'000'000, 'a'));
    EXPECT_LT(read(name).size(), 10'000U);
    expect_error(
        ErrorKind::kInput, [&] { (void)read_text(fs_, path(name), 100'000); }, path(name),
        "100000");
  }
}

}  // namespace
}  // namespace lockstep
