#include "io/safetensors_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "io/faulty_file_system.h"
#include "io/test_directory.h"

namespace lockstep {
namespace {

class SafetensorsWriter : public TestDirectory {
 protected:
  // Every byte of spec i is 'a' + i, given in pieces of three.
  static void letters(std::size_t i, const TensorSpec& spec, const TensorSink& put) {
    std::uint64_t bytes = bits_of(spec.dtype) / 8;
    for (const auto dim : spec.shape) bytes *= dim;
    const std::string text(bytes, static_cast<char>('a' + i));
    for (std::size_t at = 0; at < text.size(); at += 3) {
      put(std::as_bytes(std::span(text).subspan(at, std::min<std::size_t>(3, text.size() - at))));
    }
  }
  static std::vector<TensorSpec> specs() {
    return {{"z.half", StoredDType::kBF16, {3}},
            {"m.byte", StoredDType::kU8, {5}},
            {"b.full", StoredDType::kF32, {2, 1}},
            {"a.full", StoredDType::kF32, {}},
            {"empty", StoredDType::kF64, {0, 7}}};
  }
  // The value of every byte of a tensor, which must all be equal.
  static char letter_of(const SafetensorsReader& reader, const std::string& name) {
    std::string bytes(reader.at(name).bytes, '\0');
    reader.read_tensor_range(name, 0, std::as_writable_bytes(std::span(bytes)));
    EXPECT_EQ(bytes, std::string(bytes.size(), bytes.at(0)));
    return bytes[0];
  }
};

TEST_F(SafetensorsWriter, WritesTheseVeryBytes) {
  write_safetensors(fs_, path("t"), specs(), {{"format", "pt"}, {"a", "\"1\""}}, letters);
  const std::string header = R"({"__metadata__":{"a":"\"1\"","format":"pt"},)"
                             R"("empty":{"dtype":"F64","shape":[0,7],"data_offsets":[0,0]},)"
                             R"("a.full":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                             R"("b.full":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},)"
                             R"("z.half":{"dtype":"BF16","shape":[3],"data_offsets":[12,18]},)"
                             R"("m.byte":{"dtype":"U8","shape":[5],"data_offsets":[18,23]}})";
  const auto bytes = read("t");
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(bytes[0])) +
                      256 * static_cast<unsigned char>(bytes[1]);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(length, (header.size() + 7) / 8 * 8);
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.substr(8 + length), "ddddccccccccaaaaaabbbbb");
}

TEST_F(SafetensorsWriter, TheOrderGivenDoesNotMatter) {
  write_safetensors(fs_, path("t"), specs(), {}, letters);
  auto turned = specs();
  std::reverse(turned.begin(), turned.end());
  write_safetensors(fs_, path("u"), turned, {},
                    [&](std::size_t i, const TensorSpec& spec, const TensorSink& put) {
                      letters(turned.size() - 1 - i, spec, put);
                    });
  EXPECT_EQ(read("t"), read("u"));
}

TEST_F(SafetensorsWriter, RoundTrips) {
  const Metadata metadata = {{"k\n", "Grüße"}, {"", ""}};
  write_safetensors(fs_, path("t"), specs(), metadata, letters);
  const auto reader = SafetensorsReader::open_file(fs_, path("t"));
  EXPECT_EQ(reader.metadata(), metadata);
  EXPECT_EQ(reader.tensors().size(), 5U);
  EXPECT_EQ(reader.total_bytes(), 23U);
  EXPECT_EQ(letter_of(reader, "z.half"), 'a');
  EXPECT_EQ(letter_of(reader, "m.byte"), 'b');
  EXPECT_EQ(letter_of(reader, "b.full"), 'c');
  EXPECT_EQ(letter_of(reader, "a.full"), 'd');
  EXPECT_EQ(reader.at("b.full").shape, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(reader.at("empty").elements, 0U);
  write_safetensors(fs_, path("none"), {}, {}, letters);
  EXPECT_TRUE(SafetensorsReader::open_file(fs_, path("none")).tensors().empty());
}

TEST_F(SafetensorsWriter, ALayoutKnowsEveryOffsetBeforehand) {
  const auto layout = layout_safetensors(specs(), {{"k", "v"}});
  write_safetensors(fs_, path("t"), specs(), {{"k", "v"}}, letters);
  const auto reader = SafetensorsReader::open_file(fs_, path("t"));
  EXPECT_EQ(layout.file_bytes, fs_.file_size(path("t")));
  ASSERT_EQ(layout.tensors.size(), reader.tensors().size());
  for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
    EXPECT_EQ(layout.tensors[i].name, reader.tensors()[i].name);
    EXPECT_EQ(layout.tensors[i].offset, reader.tensors()[i].offset);
    EXPECT_EQ(layout.tensors[i].bytes, reader.tensors()[i].bytes);
    EXPECT_EQ(layout.tensors[i].name, specs()[layout.order[i]].name);
  }
}

TEST_F(SafetensorsWriter, RefusesWrongSpecsAndSources) {
  const auto refused = [&](const std::vector<TensorSpec>& bad) {
    expect_error(ErrorKind::kBug, [&] { (void)layout_safetensors(bad, {}); });
  };
  refused({{"a", StoredDType::kF32, {1}}, {"a", StoredDType::kU8, {1}}});
  refused({{"__metadata__", StoredDType::kF32, {1}}});
  refused({{"\xff", StoredDType::kF32, {1}}});
  refused({{"a", StoredDType::kF32, {std::uint64_t{1} << 40U, std::uint64_t{1} << 40U}}});
  refused({{"a", StoredDType::kF4, {3}}});
  refused({{"a", StoredDType::kF32, std::vector<std::uint64_t>(65, 1)}});
  const std::vector<TensorSpec> one = {{"a", StoredDType::kU8, {4}}};
  for (const std::string text : {"123", "12345", ""}) {
    expect_error(
        ErrorKind::kBug,
        [&] {
          write_safetensors(fs_, path("t"), one, {},
                            [&](std::size_t, const TensorSpec&, const TensorSink& put) {
                              put(std::as_bytes(std::span(text)));
                            });
        },
        "tensor a");
  }
  EXPECT_TRUE(fs_.list(root_).empty());
}

TEST_F(SafetensorsWriter, AFaultAtAnyCallKeepsTheOldFileWhole) {
  for (const bool kill : {false, true}) {
    for (std::uint64_t n = 1;; ++n) {
      write("t", "old");
      FaultyFileSystem faulty(fs_);
      if (kill) {
        faulty.kill_at(n);
      } else {
        faulty.fail_at(n, EIO);
      }
      bool stopped = false;
      try {
        write_safetensors(faulty, path("t"), specs(), {}, letters);
      } catch (const ProcessKilled&) {
        stopped = true;
      } catch (const Error& error) {
        stopped = true;
        EXPECT_EQ(error.kind(), ErrorKind::kIo);
      }
      if (kill) faulty.cut_power(PowerCut::kDataLost);
      if (read("t") != "old") {
        EXPECT_EQ(letter_of(SafetensorsReader::open_file(fs_, path("t")), "m.byte"), 'b');
      }
      if (!stopped) {
        EXPECT_NE(read("t"), "old");
        break;
      }
    }
  }
}

class Sharded : public SafetensorsWriter {
 protected:
  std::vector<std::string> write_shards(std::uint64_t max_bytes) {
    return write_safetensors_sharded(fs_, root_, specs(), {{"format", "pt"}}, max_bytes, letters);
  }
  void index(const std::string& text) { write("model.safetensors.index.json", text); }
  void refused(ErrorKind kind, const std::string& part) {
    expect_error(
        kind, [&] { (void)SafetensorsReader::open_model(fs_, root_); }, root_, part);
  }
  void shard(const std::string& name, const std::string& tensor) {
    const std::vector<TensorSpec> one = {{tensor, StoredDType::kU8, {1}}};
    write_safetensors(fs_, path(name), one, {}, letters);
  }
};

TEST_F(Sharded, RoundTripsAtEverySize) {
  for (std::uint64_t max_bytes = 1; max_bytes <= 24; ++max_bytes) {
    for (const auto& name : fs_.list(root_)) fs_.remove(path(name));
    const auto names = write_shards(max_bytes);
    EXPECT_EQ(fs_.list(root_), names);
    EXPECT_EQ(names.back() == "model.safetensors", max_bytes >= 23) << max_bytes;
    const auto reader = SafetensorsReader::open_model(fs_, root_);
    EXPECT_EQ(reader.total_bytes(), 23U);
    EXPECT_EQ(reader.metadata(), (Metadata{{"format", "pt"}}));
    EXPECT_EQ(letter_of(reader, "z.half"), 'a');
    EXPECT_EQ(letter_of(reader, "m.byte"), 'b');
    EXPECT_EQ(letter_of(reader, "a.full"), 'd');
  }
}

TEST_F(Sharded, NamesCountTheShards) {
  EXPECT_EQ(write_shards(12), (std::vector<std::string>{"model-00001-of-00002.safetensors",
                                                        "model-00002-of-00002.safetensors",
                                                        "model.safetensors.index.json"}));
  EXPECT_NE(read("model.safetensors.index.json").find("\"total_size\": 23"), std::string::npos);
}

TEST_F(Sharded, RefusesAMissingShard) {
  write_shards(12);
  fs_.remove(path("model-00002-of-00002.safetensors"));
  refused(ErrorKind::kInput, "model-00002-of-00002.safetensors");
}

TEST_F(Sharded, RefusesIndexesThatDoNotFitTheirShards) {
  shard("one", "a");
  shard("two", "b");
  index(R"({"metadata":{"total_size":999},"weight_map":{"a":"one","b":"two"}})");
  EXPECT_EQ(SafetensorsReader::open_model(fs_, root_).tensors().size(), 2U);  // size is advisory
  index(R"({"weight_map":{"a":"one","b":"one"}})");
  refused(ErrorKind::kData, "tensor \"b\" should be in one, but it is in no file");
  index(R"({"weight_map":{"a":"two","b":"one"}})");
  refused(ErrorKind::kData, "tensor \"a\" should be in two");
  index(R"({"weight_map":{"b":"two","c":"one"}})");
  refused(ErrorKind::kData, "tensor \"c\"");
  index(R"({"weight_map":{"a":"one"}})");
  EXPECT_EQ(SafetensorsReader::open_model(fs_, root_).tensors().size(), 1U);
  shard("two", "a");
  index(R"({"weight_map":{"a":"one","b":"two"}})");
  refused(ErrorKind::kData, "tensor \"a\" is in two files");
  const std::vector<TensorSpec> both = {{"b", StoredDType::kU8, {1}}, {"x", StoredDType::kU8, {1}}};
  write_safetensors(fs_, path("two"), both, {}, letters);
  refused(ErrorKind::kData, "tensor \"x\" is not in the weight_map");
}

TEST_F(Sharded, NeverLeavesItsDirectory) {
  shard("one", "a");
  ASSERT_EQ(::symlink("one", path("link").c_str()), 0);
  for (const std::string bad :
       {"../one", "/etc/passwd", "sub/one", "..", ".", "", "a\\\\b", "one\\u0000"}) {
    index(R"({"weight_map":{"a":")" + bad + "\"}}");
    refused(ErrorKind::kData, "not a plain name");
  }
  index(R"({"weight_map":{"a":"link"}})");
  refused(ErrorKind::kInput, "symbolic link");
}

TEST_F(Sharded, RefusesBrokenIndexes) {
  shard("one", "a");
  const std::pair<const char*, const char*> cases[] = {
      {"", "JSON"},
      {"[]", "object is wanted"},
      {"7", "object is wanted"},
      {"{}", "weight_map is missing"},
      {R"({"weight_map":[]})", "must be an object"},
      {R"({"weight_map":"one"})", "must be an object"},
      {R"({"weight_map":{"a":1}})", "tensor \"a\""},
      {R"({"weight_map":{"a":null}})", "tensor \"a\""},
      {R"({"weight_map":{"a":["one"]}})", "tensor \"a\""},
      {R"({"weight_map":{"a":{"b":"one"}}})", "tensor \"a\""},
      {R"({"weight_map":{"a":"one","a":"one"}})", "twice"},
      {R"({"weight_map":{"a":"one"},"weight_map":{}})", "twice"},
      {R"({"weight_map":{"a":"one"}} x)", "JSON"},
      {"{\"weight_map\":{\"a\":\"one\"}}\xff", "UTF-8"},
  };
  for (const auto& [text, part] : cases) {
    SCOPED_TRACE(text);
    index(text);
    refused(ErrorKind::kData, part);
  }
  index("{\"metadata\":" + std::string(100, '[') + std::string(100, ']') + "}");
  refused(ErrorKind::kData, "deeper");
  index(std::string(R"({"weight_map":{"a":"one"}})") + '\0' + "{}");
  refused(ErrorKind::kData, "NUL");
  fs_.remove(path("model.safetensors.index.json"));
  refused(ErrorKind::kInput, "neither");
}

std::uint64_t peak_resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6));
  }
  return 0;
}

// The shapes of a 7B model's 355 tensors, read from sparse shards of 14 GB that take no disk.
TEST_F(Sharded, SevenBillionParametersStreamInLittleMemory) {
  const std::uint64_t kWidth = 4096;
  const std::uint64_t kInner = 11008;
  std::vector<TensorSpec> model = {{"embed", StoredDType::kBF16, {100278, kWidth}},
                                   {"lm_head", StoredDType::kBF16, {100278, kWidth}},
                                   {"norm", StoredDType::kBF16, {kWidth}}};
  for (int layer = 0; layer < 32; ++layer) {
    const auto add = [&](const char* name, std::vector<std::uint64_t> shape) {
      model.push_back({std::to_string(layer) + name, StoredDType::kBF16, std::move(shape)});
    };
    for (const char* name : {".q", ".k", ".v", ".o"}) add(name, {kWidth, kWidth});
    for (const char* name : {".qn", ".kn", ".an", ".fn"}) add(name, {kWidth});
    for (const char* name : {".gate", ".up"}) add(name, {kInner, kWidth});
    add(".down", {kWidth, kInner});
  }
  ASSERT_EQ(model.size(), 355U);
  const auto layout = layout_safetensors(model, {});
  ASSERT_GT(layout.file_bytes, std::uint64_t{14'000'000'000});
  {
    const auto file = fs_.open_output(path("model.safetensors"), OpenMode::kCreateNew);
    file->append(layout.header);
    const std::byte last[] = {std::byte{0x3f}};
    try {
      file->write_at(layout.file_bytes - 1, last);
    } catch (const Error& error) {
      GTEST_SKIP() << "no sparse files of 14 GB here: " << error.what();
    }
    file->close();
  }
  const auto before = peak_resident_kib();
  const auto reader = SafetensorsReader::open_model(fs_, root_);
  std::vector<float> row(kWidth);
  for (const auto& tensor : reader.tensors()) {
    reader.read_f32(tensor.name, tensor.elements - row.size(), row);
  }
  EXPECT_EQ(row.back(), to_float(bf16{0x3f00}));
  EXPECT_LT(peak_resident_kib() - before, 32U << 10U);
}

}  // namespace
}  // namespace lockstep
