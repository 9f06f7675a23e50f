#include "io/npy.h"

#include "io/test_directory.h"

namespace lockstep {
namespace {

class Npy : public TestDirectory {
 protected:
  // A file as NumPy writes it: the header padded so that the payload starts at a multiple of 64.
  static std::string file(int version, const std::string& dictionary, std::size_t payload) {
    const std::size_t before = version == 1 ? 10 : 12;
    std::string header = dictionary;
    while ((before + header.size() + 1) % 64 != 0) header += ' ';
    header += '\n';
    std::string bytes = "\x93NUMPY";
    bytes += static_cast<char>(version);
    bytes += '\0';
    for (std::size_t i = 0; i < before - 8; ++i) {
      bytes += static_cast<char>(header.size() >> (8 * i));
    }
    return bytes + header + std::string(payload, '\1');
  }
  std::optional<NpyHeader> parse(std::string_view bytes) {
    return parse_npy_header(*fs_.open_input(write("t.npy", bytes)));
  }
  void refused(ErrorKind kind, std::string_view bytes, const std::string& part) {
    expect_error(
        kind, [&] { (void)parse(bytes); }, path("t.npy"), part);
  }
};

constexpr const char* kGood = "{'descr': '<u4', 'fortran_order': False, 'shape': (3,), }";

TEST_F(Npy, ReadsEveryVersion) {
  for (const int version : {1, 2, 3}) {
    const auto header = parse(file(version, kGood, 12));
    ASSERT_TRUE(header.has_value());
    EXPECT_EQ(header->payload_offset % 64, 0U);
    EXPECT_EQ(header->element_bytes, 4U);
    EXPECT_EQ(header->elements, 3U);
  }
  const auto narrow = parse(file(1, "{\"shape\":(2,),'fortran_order':False,'descr':'<u2'}", 4));
  ASSERT_TRUE(narrow.has_value());
  EXPECT_EQ(narrow->element_bytes, 2U);
  EXPECT_EQ(narrow->elements, 2U);
}

TEST_F(Npy, RawTokenFilesHaveNoHeader) {
  EXPECT_FALSE(parse("").has_value());
  EXPECT_FALSE(parse("\x93NUM").has_value());
  EXPECT_FALSE(parse(std::string(100, '\1')).has_value());
}

TEST_F(Npy, EveryCutOfTheFileIsRefused) {
  const auto whole = file(2, kGood, 12);
  for (std::size_t cut = 6; cut < whole.size(); ++cut) {
    refused(ErrorKind::kData, whole.substr(0, cut),
            cut < whole.size() - 12 ? "cut off" : "promises 3 elements");
  }
  refused(ErrorKind::kData, whole + "x", "promises 3 elements");
}

TEST_F(Npy, OtherArraysAreRefusedByName) {
  const auto bad = [&](const std::string& dictionary, const std::string& part) {
    refused(ErrorKind::kInput, file(1, dictionary, 12), part);
  };
  bad("{'descr': '>u4', 'fortran_order': False, 'shape': (3,)}", "descr is '>u4'");
  bad("{'descr': '<i8', 'fortran_order': False, 'shape': (3,)}", "descr is '<i8'");
  bad("{'descr': [('a', '<u4')], 'fortran_order': False, 'shape': (3,)}", "quoted string");
  bad("{'descr': '<u4', 'fortran_order': True, 'shape': (3,)}", "fortran_order");
  bad("{'descr': '<u4', 'fortran_order': False, 'shape': (3, 1)}", "more than one dimension");
  bad("{'descr': '<u4', 'fortran_order': False, 'shape': ()}", "shape");
  bad("{'descr': '<u4', 'fortran_order': False, 'shape': (-3,)}", "shape");
  bad("{'descr': '<u4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "shape");
  bad("{'descr': '<u4', 'shape': (3,)}", "missing");
  bad("{'descr': '<u4', 'descr': '<u4', 'fortran_order': False, 'shape': (3,)}", "twice");
  bad("{'descr': '<u4', 'fortran_order': False, 'shape': (3,), 'x': 1}", "'x'");
  bad("{'descr': '<u4', 'fortran_order': False, 'shape': (3,)} exit()", "follows");
  bad("{'descr': '<u4', 'fortran_order': False, 'shape': (3,)", "'}'");
  bad("{'descr': '<u4", "no end");
  bad("", "'{'");
  refused(ErrorKind::kInput, file(4, kGood, 12), "version 4.0");
}

TEST_F(Npy, SizesThatOverflowAreRefused) {
  refused(ErrorKind::kData,
          file(1, "{'descr': '<u4', 'fortran_order': False, 'shape': (4611686018427387907,)}", 12),
          "promises 4611686018427387907");
  auto long_header = file(2, kGood, 12);
  long_header[11] = '\x7f';
  refused(ErrorKind::kInput, long_header, "at most 65536");
}

}  // namespace
}  // namespace lockstep
