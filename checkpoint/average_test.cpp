#include "checkpoint/average.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/hf_export.h"
#include "checkpoint/hf_import.h"

namespace lockstep {
namespace {

namespace stdfs = std::filesystem;

ModelConfig small() {
  ModelConfig config;
  config.preset = Preset::kCustom;
  config.n_layers = 1;
  config.d_model = 8;
  config.n_heads = 2;
  config.n_kv_heads = 1;
  config.head_dim = 4;
  config.d_ff = 10;
  config.vocab_size = 20;
  config.padded_vocab_size = 24;
  config.context_length = 64;
  config.sliding_window = 4;
  config.layer_types = {LayerType::kFull};
  config.eos_token_id = 18;
  config.pad_token_id = 19;
  return config;
}

class Average : public testing::Test {
 protected:
  void SetUp() override {
    root_ = stdfs::temp_directory_path() / concat("lockstep-average-", ::getpid());
    stdfs::remove_all(root_);
    stdfs::create_directories(root_);
  }
  void TearDown() override { stdfs::remove_all(root_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (root_ / name).string(); }

  // A model whose element i of a tensor is value(i).
  template <class Value>
  AverageSource make(const std::string& name, Value value, const ModelConfig& config = small()) {
    export_hf(fs_, path(name), config, {.dtype = StoredDType::kF32},
              [&](const Parameter&, std::int64_t first, std::span<float> out) {
                for (std::size_t i = 0; i < out.size(); ++i) {
                  out[i] = value(first + static_cast<std::int64_t>(i));
                }
              });
    return {path(name), ""};
  }
  AverageSource constant(const std::string& name, float x) {
    return make(name, [x](std::int64_t) { return x; });
  }
  [[nodiscard]] std::vector<float> weights(const std::string& name, const char* tensor) {
    const HfModel model(fs_, path(name));
    const ParameterTable table(model.config());
    const Parameter& parameter = table.at(tensor);
    std::vector<float> values(static_cast<std::size_t>(parameter.size));
    model.read(parameter, 0, values);
    return values;
  }
  [[nodiscard]] std::string refusal(const std::vector<AverageSource>& sources) {
    try {
      average_models(fs_, sources, path("out"), {});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return error.what();
    }
    return "";
  }
  [[nodiscard]] std::string file(const std::string& name) {
    return read_file(fs_, path(name), std::uint64_t{1} << 24);
  }

  FileSystem& fs_ = FileSystem::real();
  stdfs::path root_;
};

TEST_F(Average, IsTheMeanRoundedOnce) {
  const auto a = make("a", [](std::int64_t i) { return 0.1F * static_cast<float>(i); });
  const auto b = make("b", [](std::int64_t i) { return 1.0F + 0.3F * static_cast<float>(i); });
  const auto c = make("c", [](std::int64_t i) { return -0.7F * static_cast<float>(i); });
  const AverageReport report = average_models(fs_, {a, b, c}, path("out"), {});
  for (const char* tensor : {"model.norm.weight", "lm_head.weight"}) {
    const auto x = weights("a", tensor);
    const auto y = weights("b", tensor);
    const auto z = weights("c", tensor);
    const auto mean = weights("out", tensor);
    ASSERT_EQ(mean.size(), x.size());
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const double sum =
          static_cast<double>(x[i]) + static_cast<double>(y[i]) + static_cast<double>(z[i]);
      // Rounding to fp32 moves a mean by at most 2^-24 of itself.
      EXPECT_NEAR(mean[i], sum / 3, 1e-7 * (1 + std::abs(sum))) << tensor << " " << i;
    }
  }
  EXPECT_EQ(report.sources.size(), 3U);
  EXPECT_EQ(HfModel(fs_, path("out")).config(), HfModel(fs_, path("a")).config());
}

TEST_F(Average, SumsInDoublePrecision) {
  // In fp32, 2^24 + 1 + 1 is 2^24: both ones would be lost.
  average_models(fs_, {constant("a", 16777216.0F), constant("b", 1.0F), constant("c", 2.0F)},
                 path("out"), {});
  EXPECT_EQ(weights("out", "model.norm.weight").front(), static_cast<float>(16777219.0 / 3));
}

TEST_F(Average, IsTheSameFilesForEveryOrderOfTheSources) {
  const auto wild = [](int seed) {
    return [seed](std::int64_t i) {
      return std::ldexp(std::sin(static_cast<float>(i * 7 + seed)),
                        static_cast<int>((i * seed) % 60) - 30);
    };
  };
  std::vector<AverageSource> sources = {make("a", wild(1)), make("b", wild(2)), make("c", wild(5))};
  std::sort(sources.begin(), sources.end(),
            [](const auto& x, const auto& y) { return x.directory < y.directory; });
  int order = 0;
  do {
    average_models(fs_, sources, path(concat("out", order)), {});
    for (const char* name : {"model.safetensors", "config.json", "average.json"}) {
      EXPECT_EQ(file(concat("out", order, "/", name)), file(concat("out0/", name))) << name;
    }
    ++order;
  } while (std::next_permutation(sources.begin(), sources.end(), [](const auto& x, const auto& y) {
    return x.directory < y.directory;
  }));
  EXPECT_EQ(order, 6);
}

TEST_F(Average, RecordsWhereItCameFrom) {
  const auto a = constant("a", 1.0F);
  const auto b = constant("b", 2.0F);
  const AverageReport report = average_models(fs_, {b, a}, path("out"), {});
  const Json json = parse_json(file("out/average.json"), "average.json");
  EXPECT_EQ(json["format"], "lockstep-average");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["weights"], weights_hash(fs_, path("out")));
  ASSERT_EQ(json["sources"].size(), 2U);
  for (const auto& source : json["sources"]) {
    EXPECT_EQ(source["weights"], weights_hash(fs_, source["directory"]));
    EXPECT_TRUE(source["step"].is_null());
  }
  EXPECT_EQ(report.weights, json["weights"]);
}

TEST_F(Average, OfAveragesIsAcceptedLikeAnyModel) {
  average_models(fs_, {constant("a", 1.0F), constant("b", 3.0F)}, path("ab"), {});
  average_models(fs_, {{path("ab"), ""}, constant("c", 6.0F)}, path("out"),
                 {.dtype = StoredDType::kBF16, .progress = {}});
  EXPECT_EQ(weights("out", "model.norm.weight").front(), 4.0F);
}

TEST_F(Average, RefusesWhatCannotBeAveraged) {
  const auto a = constant("a", 1.0F);
  const auto b = constant("b", 2.0F);
  EXPECT_NE(refusal({a}).find("at least two"), std::string::npos);
  EXPECT_NE(refusal({a, b, a}).find("the same weights"), std::string::npos);
  // The same weights under another name count as the same.
  EXPECT_NE(refusal({a, constant("copy", 1.0F)}).find("the same weights"), std::string::npos);
  ModelConfig other = small();
  other.rope_theta = 10000;
  const auto c = make(
      "c", [](std::int64_t) { return 5.0F; }, other);
  EXPECT_NE(refusal({a, c}).find("rope_theta: 500000"), std::string::npos);
  other = small();
  other.padded_vocab_size = 32;
  const auto d = make(
      "d", [](std::int64_t) { return 5.0F; }, other);
  EXPECT_NE(refusal({a, d}).find("padded_vocab_size"), std::string::npos);
  EXPECT_FALSE(stdfs::exists(path("out")));
  stdfs::create_directories(path("out"));
  EXPECT_NE(refusal({a, b}).find("exists already"), std::string::npos);
}

TEST_F(Average, RefusesDifferentTokenizersAndCopiesTheCommonOne) {
  auto a = constant("a", 1.0F);
  auto b = constant("b", 2.0F);
  a.tokenizer_file = path("one.json");
  b.tokenizer_file = path("two.json");
  write_file_atomic(fs_, a.tokenizer_file, std::string_view("{\"v\": 1}"));
  write_file_atomic(fs_, b.tokenizer_file, std::string_view("{\"v\": 2}"));
  EXPECT_NE(refusal({a, b}).find("vocabularies"), std::string::npos);
  b.tokenizer_file = a.tokenizer_file;
  average_models(fs_, {a, b, constant("c", 3.0F)}, path("out"), {});
  EXPECT_EQ(file("out/tokenizer.json"), "{\"v\": 1}");
}

TEST_F(Average, LeavesNothingWhenAMeanIsNotFinite) {
  const auto inf = [](std::int64_t) { return std::numeric_limits<float>::infinity(); };
  const ModelConfig config = small();
  // A file may hold what an export refuses to write.
  make(
      "a", [](std::int64_t) { return 1.0F; }, config);
  std::string bytes = file("a/model.safetensors");
  const float value = inf(0);
  bytes.replace(bytes.size() - sizeof value, sizeof value,
                std::string(reinterpret_cast<const char*>(&value), sizeof value));
  write_file_atomic(fs_, path("a/model.safetensors"), std::string_view(bytes));
  try {
    average_models(fs_, {{path("a"), ""}, constant("b", 2.0F)}, path("out"), {});
    FAIL() << "an infinite weight was averaged";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNumeric);
  }
  EXPECT_EQ(fs_.list(root_.string()), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace lockstep
