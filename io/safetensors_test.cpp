#include "io/safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "io/safetensors_header.h"
#include "io/safetensors_writer.h"
#include "io/test_directory.h"

namespace lockstep {
namespace {

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    bytes += static_cast<char>(length >> shift & 0xffU);
  }
  return bytes + rest;
}

std::string file_of(const std::string& header, std::size_t payload) {
  return with_length(header.size(), header + std::string(payload, '\1'));
}

// One F32 tensor "w" of two elements with this part of its entry replaced.
std::string entry(const std::string& fields) { return file_of("{\"w\":{" + fields + "}}", 8); }

// Two U8 tensors of 4 and 4 bytes at the given offsets.
std::string two(const std::string& a, const std::string& b, std::size_t payload) {
  return file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                     R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                 payload);
}

constexpr const char* kFields = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";

struct Case {
  const char* name;
  std::string bytes;
  const char* part;  // of the message, besides the file's name
};

std::vector<Case> envelope_cases() {
  const std::string good = std::string("{\"w\":{") + kFields + "}}";
  const std::string payload(8, '\1');
  return {
      {"V1Empty", "", "has 0 bytes"},
      {"V1SevenBytes", std::string(7, '\0'), "has 7 bytes"},
      {"V2LengthOverLimit", with_length(100'000'001, good + payload), "100000001"},
      {"V2LengthWouldOverflow", with_length(~std::uint64_t{0}, good), "18446744073709551615"},
      {"V2LengthTopBit", with_length(std::uint64_t{1} << 63U, good), "9223372036854775808"},
      {"V3LengthPastTheFile", with_length(good.size() + 9, good + payload), "has only"},
      {"V4LengthZero", with_length(0, ""), "begin with '{'"},
      {"V4LengthOne", with_length(1, "{"), "begin with '{'"},
      {"V4FirstByteSpace", file_of(" " + good, 8), "begin with '{'"},
      {"V4FirstByteArray", file_of("[1]", 0), "begin with '{'"},
      {"V5NotUtf8", file_of("{\"w\xff\":{" + std::string(kFields) + "}}", 8), "UTF-8"},
      {"V5SurrogateBytes", file_of("{\"w\xed\xa0\x80\":{" + std::string(kFields) + "}}", 8),
       "UTF-8"},
      {"V6ByteOrderMark", file_of("\xef\xbb\xbf" + good, 8), "begin with '{'"},
      {"V6Comment", file_of("{/*x*/" + good.substr(1), 8), "JSON"},
      {"V6NotANumber", entry(R"("dtype":"F32","shape":[NaN],"data_offsets":[0,8])"), "JSON"},
      {"V6TextAfter", file_of(good + "x", 8), "closing '}'"},
      {"V6NewlineAfter", file_of(good + "\n", 8), "closing '}'"},
      {"V6NulAfter", file_of(good + std::string(1, '\0'), 8), "closing '}'"},
      {"V6NulHidesText", file_of(good + std::string(1, '\0') + good, 8), "NUL"},
      {"V6TwoObjects", file_of(good + good, 8), "JSON"},
      {"V6TrailingComma", entry(std::string(kFields) + ","), "JSON"},
      {"V6CutOffJson", file_of(good.substr(0, good.size() - 1), 8), "JSON"},
      {"V7Deep", file_of("{\"w\":" + std::string(100'000, '[') + "}", 0), "tensor \"w\""},
  };
}

std::vector<Case> entry_cases() {
  const std::string fields = kFields;
  return {
      {"V8TensorTwice", file_of("{\"w\":{" + fields + "},\"w\":{" + fields + "}}", 8),
       "\"w\" appears twice"},
      {"V8TensorTwiceByEscape", file_of("{\"w\":{" + fields + "},\"\\u0077\":{" + fields + "}}", 8),
       "\"w\" appears twice"},
      {"V8FieldTwice", entry(fields + R"(,"dtype":"F32")"), "\"w\": dtype appears twice"},
      {"V8MetadataTwice", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "appears twice"},
      {"V8MetadataKeyTwice", file_of(R"({"__metadata__":{"k":"a","k":"a"}})", 0),
       "\"k\" appears twice"},
      {"V9NoDType", entry(R"("shape":[2],"data_offsets":[0,8])"), "\"w\": dtype is missing"},
      {"V9NoShape", entry(R"("dtype":"F32","data_offsets":[0,8])"), "\"w\": shape is missing"},
      {"V9NoOffsets", entry(R"("dtype":"F32","shape":[2])"), "\"w\": data_offsets is missing"},
      {"V9ExtraField", entry(fields + R"(,"extra":1)"), "unknown field \"extra\""},
      {"V9EntryNotObject", file_of(R"({"w":7})", 0), "tensor \"w\""},
      {"V10UnknownDType", entry(R"("dtype":"F33","shape":[2],"data_offsets":[0,8])"), "\"F33\""},
      {"V10DTypeCase", entry(R"("dtype":"f32","shape":[2],"data_offsets":[0,8])"), "\"f32\""},
      {"V10DTypeNumber", entry(R"("dtype":32,"shape":[2],"data_offsets":[0,8])"), "dtype must"},
      {"V11ShapeNumber", entry(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), "shape must"},
      {"V11ShapeNull", entry(R"("dtype":"F32","shape":null,"data_offsets":[0,8])"), "shape must"},
      {"V11ShapeNested", entry(R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])"),
       "shape must"},
      {"V12Negative", entry(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "number -2"},
      {"V12MinusZero", entry(R"("dtype":"F32","shape":[-0],"data_offsets":[0,0])"), "number -0"},
      {"V12Fraction", entry(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), "number 2.0"},
      {"V12Exponent", entry(R"("dtype":"F32","shape":[2e0],"data_offsets":[0,8])"), "number 2e0"},
      {"V12TooLarge", entry(R"("dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8])"),
       "number 18446744073709551616"},
      {"V12String", entry(R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])"), "string \"2\""},
      {"V12Boolean", entry(R"("dtype":"F32","shape":[true],"data_offsets":[0,8])"), "boolean"},
      {"V12OffsetFraction", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8.0])"), "8.0"},
      {"V13ShapeOverflow",
       entry(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"), "overflows"},
      {"V13OverflowWithZero",
       entry(R"("dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0])"),
       "overflows"},
      {"V14ByteOverflow",
       entry(R"("dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8])"), "overflows"},
      {"V14HalfBytes", entry(R"("dtype":"F4","shape":[3],"data_offsets":[0,8])"), "whole bytes"},
      {"V15OneOffset", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), "two whole"},
      {"V15ThreeOffsets", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])"),
       "two whole"},
      {"V15BeginAfterEnd", entry(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "[8, 0]"},
      {"V16WrongSpan", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "8 bytes"},
      {"V16HugeSpan", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615])"),
       "8 bytes"},
      {"V17Rank65",
       entry(R"("dtype":"F32","shape":[1)" +
             [] {
               std::string ones;
               for (int i = 0; i < 64; ++i) ones += ",1";
               return ones;
             }() +
             R"(],"data_offsets":[0,4])"),
       "64 dimensions"},
  };
}

std::vector<Case> layout_cases() {
  return {
      {"V18FirstNotAtZero", two("[1,5]", "[5,9]", 9), "\"a\" begins at byte 1"},
      {"V18Overlap", two("[0,4]", "[3,7]", 7), "(overlap)"},
      {"V18Alias", two("[0,4]", "[0,4]", 4), "(overlap)"},
      {"V18Gap", two("[0,4]", "[5,9]", 9), "\"b\" begins at byte 5"},
      {"V19TrailingByte", two("[0,4]", "[4,8]", 9), "trailing"},
      {"V19CutOff", two("[0,4]", "[4,8]", 7), "\"b\" ends at byte 8"},
      {"V19PayloadWithoutTensors", file_of("{}", 1), "trailing"},
      {"V23MetadataNumber", file_of(R"({"__metadata__":{"k":1}})", 0), "\"k\" must be a string"},
      {"V23MetadataNull", file_of(R"({"__metadata__":null})", 0), "must be an object"},
      {"V23MetadataObject", file_of(R"({"__metadata__":{"k":{}}})", 0), "\"k\" must be a string"},
      {"V23MetadataText", file_of(R"({"__metadata__":"x"})", 0), "must be an object"},
  };
}

using Safetensors = TestDirectory;

TEST_F(Safetensors, RefusesEveryBrokenRule) {
  std::size_t count = 0;
  for (const auto& cases : {envelope_cases(), entry_cases(), layout_cases()}) {
    for (const auto& bad : cases) {
      SCOPED_TRACE(bad.name);
      const auto name = write(std::string(bad.name) + ".safetensors", bad.bytes);
      expect_error(
          ErrorKind::kData, [&] { (void)SafetensorsReader::open_file(fs_, name); }, name, bad.part);
      ++count;
    }
  }
  EXPECT_GE(count, 40U);
}

TEST_F(Safetensors, AcceptsWhatTheFormatAllows) {
  const std::string fields = kFields;
  const std::vector<std::pair<std::string, std::size_t>> good = {
      {file_of("{}", 0), 0},                                   // V23
      {file_of("{}     ", 0), 0},                              // V6: padded with spaces
      {file_of(R"({"__metadata__":{}})", 0), 0},               // V23
      {file_of(R"({"__metadata__":{"format":"pt"}})", 0), 0},  // V23
      {file_of("{\"w\":{" + fields + "}}", 8), 1},             // payload not aligned: V21
      {file_of("{ \"w\" :\n{" + fields + "} }", 8), 1},
      {entry(R"("data_offsets":[0,8],"shape":[2],"dtype":"F32")"), 1},
      {entry(R"("dtype":"F64","shape":[],"data_offsets":[0,8])"), 1},  // V11: scalar
      {file_of(R"({"w":{"dtype":"F32","shape":[0,9],"data_offsets":[0,0]}})", 0), 1},
      {entry(R"("dtype":"F4","shape":[16],"data_offsets":[0,8])"), 1},
      {two("[4,8]", "[0,4]", 8), 2},  // V20: any order
  };
  for (const auto& [bytes, tensors] : good) {
    const auto reader = SafetensorsReader::open_file(fs_, write("good", bytes));
    EXPECT_EQ(reader.tensors().size(), tensors) << bytes.substr(8);
  }
}

TEST_F(Safetensors, EmptyTensorsShareAnOffset) {
  const auto reader = SafetensorsReader::open_file(
      fs_, write("t", file_of(R"({"z":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                              R"("e":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                              R"("f":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                              2)));
  EXPECT_EQ(reader.tensors()[0].name, "e");
  EXPECT_EQ(reader.tensors()[2].name, "f");
}

TEST_F(Safetensors, NamesAreDataAndShownSafely) {
  for (const std::string name : {"../../etc/passwd", "%s%n", "", "a\\u0000b", "\\u001b[31m"}) {
    const auto reader = SafetensorsReader::open_file(
        fs_, write("t", file_of("{\"" + name + "\":{" + kFields + "}}", 8)));
    EXPECT_EQ(reader.tensors().size(), 1U);
  }
  const auto bad = write("bad", file_of(R"({"\u001b[31m\n":{"dtype":"?"}})", 0));
  expect_error(
      ErrorKind::kData, [&] { (void)SafetensorsReader::open_file(fs_, bad); }, "\\x1b[31m\\n");
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  const auto whole = two("[0,4]", "[4,8]", 8);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto name = write("t", whole.substr(0, cut));
    expect_error(
        ErrorKind::kData, [&] { (void)SafetensorsReader::open_file(fs_, name); }, name);
  }
}

class MemoryFile : public InputFile {
 public:
  explicit MemoryFile(const std::string& bytes)
      : InputFile("flipped", bytes.size()), bytes_(bytes) {}
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ASSERT_LE(offset + out.size(), bytes_.size());
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  const std::string& bytes_;
};

TEST(SafetensorsHeader, AnyFlippedBitIsRefusedOrStillALawfulFile) {
  auto bytes = two("[0,4]", "[4,8]", 8);
  for (std::size_t i = 0; i + 8 < bytes.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const char good = bytes[i];
      bytes[i] = static_cast<char>(static_cast<unsigned char>(good) ^ (1U << bit));
      try {
        const auto header = read_safetensors_header(MemoryFile(bytes));
        EXPECT_EQ(header.tensors.size(), 2U);  // a flipped name or I8 for U8, say
        EXPECT_EQ(header.tensors[1].offset + 4, bytes.size());
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
        EXPECT_NE(std::string(error.what()).find("flipped"), std::string::npos);
      }
      bytes[i] = good;
    }
  }
}

TEST_F(Safetensors, RefusesWhatIsNoRegularFile) {
  expect_error(ErrorKind::kInput, [&] { (void)SafetensorsReader::open_file(fs_, root_); });
  ASSERT_EQ(::mkfifo(path("model.safetensors").c_str(), 0600), 0);
  expect_error(
      ErrorKind::kInput, [&] { (void)SafetensorsReader::open_model(fs_, root_); }, "FIFO");
}

TEST_F(Safetensors, AFileThatShrinksIsAnErrorNamingTheTensor) {
  const auto name = write("t", two("[0,4]", "[4,8]", 8));
  const auto reader = SafetensorsReader::open_file(fs_, name);
  ASSERT_EQ(::truncate(name.c_str(), static_cast<off_t>(fs_.file_size(name) - 2)), 0);
  std::array<std::byte, 4> out{};
  reader.read_tensor_range("a", 0, out);
  expect_error(
      ErrorKind::kData, [&] { reader.read_tensor_range("b", 0, out); }, name, "\"b\"");
}

TEST_F(Safetensors, AManyTensorHeaderStopsAtTheLimit) {
  std::string header = "{";
  for (int i = 0; i < 131'073; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  const auto name = write("t", file_of(header + "}", 0));
  expect_error(
      ErrorKind::kData, [&] { (void)SafetensorsReader::open_file(fs_, name); }, "131072 tensors");
}

TEST_F(Safetensors, RangesAreBytesOfTheTensor) {
  const auto reader =
      SafetensorsReader::open_file(fs_, write("t", two("[0,4]", "[4,8]", 0) + "01234567"));
  std::string out(2, '\0');
  reader.read_tensor_range("b", 1, std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(out, "56");
  expect_error(ErrorKind::kBug,
               [&] { reader.read_tensor_range("a", 3, std::as_writable_bytes(std::span(out))); });
  expect_error(
      ErrorKind::kData, [&] { (void)reader.at("c"); }, path("t"), "\"c\"");
  expect_error(
      ErrorKind::kData, [&] { reader.require_shape("a", std::vector<std::uint64_t>{5}); },
      path("t"), "\"a\"", "[4]", "[5]");
  reader.require_shape("a", std::vector<std::uint64_t>{4});
  reader.require_exactly(std::vector<std::string>{"b", "a"});
  expect_error(
      ErrorKind::kData,
      [&] {
        reader.require_exactly(std::vector<std::string>{"a", "x"});
      },
      "missing: \"x\"", "unexpected: \"b\"");
}

TEST_F(Safetensors, ConvertsToF32) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<std::uint16_t> halves = {0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x0001,
                                             0x03ff, 0x0400, 0x7c00, 0xfc00, 0x3555};
  const std::vector<float> of_halves = {0.0F,     -0.0F,     1.0F,       -2.0F,
                                        65504.0F, 0x1p-24F,  0x3ffp-24F, 0x1p-14F,
                                        infinity, -infinity, 0x1.554p-2F};
  const std::vector<std::uint16_t> brains = {0x3f80, 0xc040, 0x0001};
  const std::vector<double> doubles = {1.0, 1.0 + 0x1p-24, 1.0 + 0x3p-24, -1e300};
  std::vector<float> floats(40'000);
  for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i) / 3;
  const std::vector<TensorSpec> specs = {{"h", StoredDType::kF16, {halves.size()}},
                                         {"b", StoredDType::kBF16, {brains.size()}},
                                         {"d", StoredDType::kF64, {doubles.size()}},
                                         {"f", StoredDType::kF32, {4, 10'000}},
                                         {"i", StoredDType::kI64, {0}}};
  write_safetensors(fs_, path("t"), specs, {},
                    [&](std::size_t i, const TensorSpec&, const TensorSink& put) {
                      if (i == 0) put(std::as_bytes(std::span(halves)));
                      if (i == 1) put(std::as_bytes(std::span(brains)));
                      if (i == 2) put(std::as_bytes(std::span(doubles)));
                      if (i == 3) put(std::as_bytes(std::span(floats)));
                    });
  const auto reader = SafetensorsReader::open_file(fs_, path("t"));
  const auto all = [&](const char* name, std::size_t first) {
    std::vector<float> out(reader.at(name).elements - first);
    reader.read_f32(name, first, out);
    return out;
  };
  EXPECT_EQ(all("h", 0), of_halves);
  EXPECT_TRUE(std::signbit(all("h", 0)[1]));
  EXPECT_EQ(all("b", 0), (std::vector<float>{1.0F, -3.0F, 0x1p-133F}));
  EXPECT_EQ(all("d", 0), (std::vector<float>{1.0F, 1.0F, 1.0F + 0x1p-22F, -infinity}));
  EXPECT_EQ(all("f", 0), floats);
  EXPECT_EQ(all("f", 39'998), (std::vector<float>{floats[39'998], floats[39'999]}));
  EXPECT_EQ(all("d", 3), (std::vector<float>{-infinity}));
  expect_error(
      ErrorKind::kInput, [&] { (void)all("i", 0); }, path("t"), "\"i\"", "I64");
  std::vector<float> out(2);
  expect_error(ErrorKind::kBug, [&] { reader.read_f32("d", 3, out); });
}

TEST_F(Safetensors, HalvesSpanningTheBufferConvertAlike) {
  std::vector<std::uint16_t> brains(100'000);
  for (std::size_t i = 0; i < brains.size(); ++i) {
    brains[i] = to_bf16(static_cast<float>(i)).bits;
  }
  const std::vector<TensorSpec> specs = {{"b", StoredDType::kBF16, {brains.size()}}};
  write_safetensors(fs_, path("t"), specs, {},
                    [&](std::size_t, const TensorSpec&, const TensorSink& put) {
                      put(std::as_bytes(std::span(brains)));
                    });
  std::vector<float> out(brains.size() - 5);
  SafetensorsReader::open_file(fs_, path("t")).read_f32("b", 5, out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(out[i], to_float(bf16{brains[i + 5]})) << i;
  }
}

TEST_F(Safetensors, DTypeNamesRoundTrip) {
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(StoredDType::kU64); ++i) {
    const auto dtype = static_cast<StoredDType>(i);
    EXPECT_EQ(stored_dtype_of_name(name_of(dtype)), dtype);
  }
  EXPECT_EQ(name_of(StoredDType::kU64), "U64");
  EXPECT_EQ(stored_dtype(DType::kBF16), StoredDType::kBF16);
  EXPECT_EQ(bits_of(stored_dtype(DType::kF64)), 64U);
}

}  // namespace
}  // namespace lockstep
