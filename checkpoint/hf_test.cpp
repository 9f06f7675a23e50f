#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/json.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/hf_export.h"
#include "checkpoint/hf_import.h"
#include "io/safetensors_writer.h"
#include "model/init.h"
#include "tensor/buffer.h"

namespace lockstep {
namespace {

ModelConfig small() {
  ModelConfig config;
  config.preset = Preset::kCustom;
  config.n_layers = 2;
  config.d_model = 8;
  config.n_heads = 2;
  config.n_kv_heads = 1;
  config.head_dim = 6;
  config.d_ff = 10;
  config.vocab_size = 20;
  config.padded_vocab_size = 24;
  config.context_length = 64;
  config.sliding_window = 4;
  config.layer_types = {LayerType::kSliding, LayerType::kFull};
  config.eos_token_id = 18;
  config.pad_token_id = 19;
  return config;
}

Json json_of(const ModelConfig& config) {
  return parse_json(hf_config_json(config, StoredDType::kF32), "test");
}

// The message of the refusal; empty when there is none.
std::string refusal(const Json& json) {
  try {
    static_cast<void>(parse_hf_config(json.dump(), "config.json"));
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.kind()), 2);
    return error.what();
  }
  return "";
}

TEST(HfConfig, WhatIsWrittenReadsBack) {
  for (const bool padded : {false, true}) {
    for (const bool yarn : {false, true}) {
      for (const bool all_layers : {false, true}) {
        ModelConfig config = small();
        if (!padded) config = without_padding(config);
        if (yarn) config.rope_full = {.scaling = RopeScaling::kYarn, .original_context = 16};
        config.rope_full.attention_factor = yarn ? std::optional(1.25) : std::nullopt;
        config.rope_scaling_on_all_layers = all_layers;
        ModelConfig read = parse_hf_config(json_of(config).dump(), "test").model;
        for (std::int64_t layer = 0; layer < config.n_layers; ++layer) {
          EXPECT_EQ(read.rope(layer), config.rope(layer));
        }
        // The compatibility switch reads back as the same scaling by layer type.
        read.rope_sliding = config.rope_sliding;
        read.rope_scaling_on_all_layers = all_layers;
        EXPECT_EQ(read, config);
      }
    }
  }
}

TEST(HfConfig, LayerTypesAreExplicitAndWin) {
  Json json = json_of(small());
  EXPECT_EQ(json["layer_types"], Json({"sliding_attention", "full_attention"}));
  json.erase("layer_types");
  json["num_hidden_layers"] = 5;
  const ModelConfig pattern = parse_hf_config(json.dump(), "test").model;
  for (std::int64_t layer = 0; layer < 5; ++layer) {
    EXPECT_EQ(pattern.layer_type(layer) == LayerType::kFull, layer == 3) << layer;
  }
}

TEST(HfConfig, ReadsEveryFormOfRope) {
  Json json = json_of(without_padding(small()));
  const Json yarn = {
      {"rope_type", "yarn"}, {"factor", 8.0}, {"original_max_position_embeddings", 16}};
  const auto scaling = [](const Json& from) {
    const ModelConfig model = parse_hf_config(from.dump(), "test").model;
    return std::pair(model.rope(0).scaling, model.rope(1).scaling);
  };
  const std::pair full_only{RopeScaling::kNone, RopeScaling::kYarn};
  json["rope_scaling"] = yarn;
  EXPECT_EQ(scaling(json), full_only);
  json.erase("rope_scaling");
  json.erase("rope_theta");
  json["rope_parameters"] = yarn;
  json["rope_parameters"]["rope_theta"] = 10000;
  EXPECT_EQ(scaling(json), full_only);
  EXPECT_EQ(parse_hf_config(json.dump(), "test").model.rope_theta, 10000);
  const Json plain = {{"rope_type", "default"}, {"rope_theta", 10000}};
  json["rope_parameters"] = {{"sliding_attention", plain}, {"full_attention", yarn}};
  json["rope_parameters"]["full_attention"]["rope_theta"] = 10000;
  EXPECT_EQ(scaling(json), full_only);
  json["rope_parameters"]["sliding_attention"] = json["rope_parameters"]["full_attention"];
  EXPECT_EQ(scaling(json), std::pair(RopeScaling::kYarn, RopeScaling::kYarn));
  json["rope_parameters"]["sliding_attention"]["rope_theta"] = 20000;
  EXPECT_NE(refusal(json).find("rope_theta"), std::string::npos);
  json["rope_parameters"] = {{"rope_type", "llama3"}};
  EXPECT_NE(refusal(json).find("rope_type"), std::string::npos);
}

TEST(HfConfig, RefusesWhatWouldChangeTheResultByName) {
  const Json good = json_of(without_padding(small()));
  EXPECT_EQ(refusal(good), "");
  const std::vector<std::pair<const char*, Json>> changes = {
      {"model_type", "llama"},
      {"hidden_act", "gelu"},
      {"attention_bias", true},
      {"mlp_bias", true},
      {"tie_word_embeddings", true},
      {"attention_dropout", 0.1},
      {"quantization_config", {{"bits", 4}}},
      {"final_logit_softcapping", 30.0},
      {"hidden_size", "eight"},
      {"hidden_size", -8},
      {"num_key_value_heads", 3},
      {"head_dim", 5},
      {"layer_types", {"sliding_attention", "chunked_attention"}},
      {"layer_types", {"full_attention"}},
      {"sliding_window", nullptr},
      {"vocab_size", 1e9},
      {"eos_token_id", 20},
  };
  for (const auto& [key, value] : changes) {
    Json bad = good;
    bad[key] = value;
    const std::string message = refusal(bad);
    EXPECT_FALSE(message.empty()) << key << " = " << value;
  }
  for (const char* key : {"hidden_size", "num_hidden_layers", "vocab_size", "model_type"}) {
    Json bad = good;
    bad.erase(key);
    EXPECT_NE(refusal(bad).find(key), std::string::npos) << key;
  }
}

TEST(HfConfig, ReportsFieldsThatItDoesNotKnow) {
  Json json = json_of(small());
  json["moon_phase"] = "full";
  EXPECT_EQ(parse_hf_config(json.dump(), "test").ignored, std::vector<std::string>{"moon_phase"});
}

class HfDirectory : public testing::Test {
 protected:
  HfDirectory()
      : root_(testing::TempDir() + "lockstep_hf_" + std::to_string(getpid()) + "_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~HfDirectory() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::string path(const std::string& name) const { return root_ + "/" + name; }

  static ParameterSource initial() {
    return [](const Parameter& parameter, std::int64_t first, std::span<float> out) {
      initial_values(parameter, {.seed = 4}, first, out);
    };
  }
  // All weights of the model in a directory, in the layout of `config`.
  std::vector<float> load(const std::string& name, const ModelConfig& config) {
    const HfModel model(fs_, path(name));
    const ParameterTable table(config);
    std::vector<float> flat(static_cast<std::size_t>(table.size()));
    ThreadPool pool(2);
    model.load(table, {flat.data(), DType::kF32, {table.size()}}, pool);
    return flat;
  }

  FileSystem& fs_ = FileSystem::real();
  std::string root_;
};

TEST_F(HfDirectory, WhatIsExportedComesBack) {
  const ModelConfig config = small();
  export_hf(fs_, path("whole"), config, {.dtype = StoredDType::kF32}, initial());
  const auto shards = export_hf(fs_, path("shards"), config,
                                {.dtype = StoredDType::kF32, .max_shard_bytes = 1000}, initial());
  EXPECT_GT(shards.size(), 4U);
  const std::vector<float> flat = load("whole", config);
  EXPECT_EQ(load("shards", config), flat);
  const ParameterTable table(config);
  const Parameter& down = table.at("model.layers.1.mlp.down_proj.weight");
  float wanted = 0;
  initial_values(down, {.seed = 4}, 3, {&wanted, 1});
  EXPECT_EQ(flat[static_cast<std::size_t>(down.offset + 3)], wanted);

  export_hf(fs_, path("half"), config, {.dtype = StoredDType::kBF16}, initial());
  const std::vector<float> rounded = load("half", config);
  for (std::size_t i = 0; i < flat.size(); ++i) {
    ASSERT_EQ(rounded[i], to_float(to_bf16(flat[i]))) << i;
  }
}

TEST_F(HfDirectory, VocabularyRowsAreCutAndPadded) {
  const ModelConfig padded = small();
  const ModelConfig cut = without_padding(padded);
  export_hf(fs_, path("padded"), padded, {.dtype = StoredDType::kF32}, initial());
  export_hf(fs_, path("cut"), cut, {.dtype = StoredDType::kF32}, initial());
  EXPECT_EQ(HfModel(fs_, path("padded")).config().vocab_size, 20);
  EXPECT_EQ(HfModel(fs_, path("padded")).config().vocab_rows(), 24);
  EXPECT_EQ(HfModel(fs_, path("cut")).config().vocab_rows(), 20);
  EXPECT_EQ(load("padded", cut), load("cut", cut));
  const std::vector<float> from_cut = load("cut", padded);
  const std::vector<float> from_padded = load("padded", padded);
  const ParameterTable table(padded);
  for (const Parameter& parameter : table.parameters()) {
    const std::int64_t real =
        is_vocabulary_matrix(parameter) ? 20 * padded.d_model : parameter.size;
    for (std::int64_t i = 0; i < parameter.size; ++i) {
      const auto at = static_cast<std::size_t>(parameter.offset + i);
      ASSERT_EQ(from_cut[at], i < real ? from_padded[at] : 0.0F) << parameter.name << " " << i;
    }
  }
  // A config.json that counts 20 ids beside tensors of 24 rows, and one that counts all rows.
  write_file_atomic(fs_, path("padded/config.json"),
                    std::string_view(hf_config_json(cut, StoredDType::kF32)));
  EXPECT_EQ(HfModel(fs_, path("padded")).config().vocab_rows(), 24);
  ModelConfig all_real = padded;
  all_real.vocab_size = 24;
  write_file_atomic(fs_, path("padded/config.json"),
                    std::string_view(hf_config_json(all_real, StoredDType::kF32)));
  EXPECT_EQ(HfModel(fs_, path("padded")).config().vocab_size, 24);
  EXPECT_EQ(HfModel(fs_, path("padded"), {.vocab_size = 20}).config(), [&] {
    ModelConfig wanted = padded;
    wanted.vocab_size = 20;
    return wanted;
  }());
  // Fewer rows than ids.
  write_file_atomic(fs_, path("cut/config.json"),
                    std::string_view(hf_config_json(all_real, StoredDType::kF32)));
  EXPECT_THROW(HfModel(fs_, path("cut")), Error);
}

TEST_F(HfDirectory, EveryTensorIsWantedOnceAndNoneBesides) {
  const ModelConfig config = without_padding(small());
  const ParameterTable table(config);
  const auto write = [&](const std::function<void(std::vector<TensorSpec>&)>& change) {
    std::vector<TensorSpec> specs;
    for (const Parameter& parameter : table.parameters()) {
      specs.push_back(
          {parameter.name, StoredDType::kF32, {parameter.shape.begin(), parameter.shape.end()}});
    }
    change(specs);
    write_safetensors(fs_, path("model.safetensors"), specs, {},
                      [](std::size_t, const TensorSpec& spec, const TensorSink& put) {
                        std::uint64_t elements = 1;
                        for (const std::uint64_t dim : spec.shape) elements *= dim;
                        const std::vector<float> zeros(elements);
                        put(std::as_bytes(std::span(zeros)));
                      });
    write_file_atomic(fs_, path("config.json"),
                      std::string_view(hf_config_json(config, StoredDType::kF32)));
    try {
      const HfModel model(fs_, root_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(write([](auto&) {}), "");
  EXPECT_NE(write([](auto& specs) { specs.erase(specs.begin() + 5); }).find("k_norm"),
            std::string::npos);
  EXPECT_NE(write([](auto& specs) {
              specs.push_back({"model.layers.0.input_layernorm.weight", StoredDType::kF32, {8}});
            }).find("input_layernorm"),
            std::string::npos);
  EXPECT_NE(write([](auto& specs) {
              specs[6].shape = {12, 8};
            }).find(table.parameters()[6].name),
            std::string::npos);
}

TEST_F(HfDirectory, AModelThatIsThereIsNotOverwrittenUnasked) {
  export_hf(fs_, path("m"), small(), {.max_shard_bytes = 1000}, initial());
  EXPECT_THROW(export_hf(fs_, path("m"), small(), {}, initial()), Error);
  export_hf(fs_, path("m"), small(), {.overwrite = true}, initial());
  EXPECT_EQ(fs_.list(path("m")), (std::vector<std::string>{"config.json", "model.safetensors"}));
}

TEST_F(HfDirectory, ValuesThatAreNotFiniteAreNotExported) {
  try {
    export_hf(fs_, path("m"), small(), {},
              [](const Parameter&, std::int64_t, std::span<float> out) {
                std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
              });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNumeric);
  }
  EXPECT_FALSE(fs_.exists(path("m/config.json")));
}

TEST_F(HfDirectory, AnotherModelIsRefused) {
  export_hf(fs_, path("m"), small(), {}, initial());
  ModelConfig other = small();
  other.d_ff = 12;
  EXPECT_THROW(load("m", other), Error);
  other = small();
  other.n_layers = 1;
  other.layer_types = {LayerType::kFull};
  EXPECT_THROW(load("m", other), Error);
}

}  // namespace
}  // namespace lockstep
