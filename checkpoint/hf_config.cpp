#include "checkpoint/hf_config.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep {
namespace {

// One JSON object of the file with the names of the fields that were looked at.
class Object {
 public:
  Object(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) fail(ErrorKind::kInput, where_, ": must be a JSON object");
  }

  // Null when absent or JSON null.
  const Json* find(const char* key) {
    seen_.emplace_back(key);
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  const Json& require(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) fail(ErrorKind::kInput, where_, ": ", key, " is missing");
    return *value;
  }

  std::int64_t integer(const char* key) { return as_integer(key, require(key)); }
  std::int64_t integer(const char* key, std::int64_t otherwise) {
    const Json* value = find(key);
    return value == nullptr ? otherwise : as_integer(key, *value);
  }
  std::optional<double> number(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) wrong(key, *value, "a number");
    return value->get<double>();
  }
  std::string text(const char* key, const char* otherwise) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) wrong(key, *value, "a string");
    return value->get<std::string>();
  }

  // Refuses any value but absence, null and `only`.
  void allow_only(const char* key, const Json& only) {
    const Json* value = find(key);
    if (value != nullptr && *value != only)
      wrong(key, *value, only.dump() + ", the only supported");
  }

  [[noreturn]] void wrong(const char* key, const Json& found, std::string_view wanted) const {
    fail(ErrorKind::kInput, where_, ": ", key, " = ", printable(found.dump()), ": must be ",
         wanted);
  }

  void ignore(const char* key) { seen_.emplace_back(key); }
  [[nodiscard]] std::vector<std::string> not_seen() const {
    std::vector<std::string> names;
    for (const auto& [key, value] : json_.items()) {
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) names.push_back(key);
    }
    return names;
  }
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  std::int64_t as_integer(const char* key, const Json& value) const {
    if (!value.is_number_integer()) wrong(key, value, "an integer");
    return value.get<std::int64_t>();
  }

  const Json& json_;
  std::string where_;
  std::vector<std::string> seen_;
};

// A size: 1 to 2^24.
std::int64_t size(Object& object, const char* key, std::int64_t value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (value < 1 || value > kMost) object.wrong(key, value, concat("from 1 to ", kMost));
  return value;
}

// One set of rope parameters: rope_scaling of the old form without theta, rope_parameters or a
// member of it in the new one.
RopeConfig parse_rope(Object& rope, std::int64_t max_positions) {
  RopeConfig config;
  const std::string type = rope.text("rope_type", rope.text("type", "default").c_str());
  if (type == "default") return config;
  if (type != "yarn") rope.wrong("rope_type", type, "\"default\" or \"yarn\"");
  config.scaling = RopeScaling::kYarn;
  config.original_context = size(rope, "original_max_position_embeddings",
                                 rope.integer("original_max_position_embeddings", max_positions));
  config.factor = rope.number("factor").value_or(static_cast<double>(max_positions) /
                                                 static_cast<double>(config.original_context));
  config.beta_fast = rope.number("beta_fast").value_or(32);
  config.beta_slow = rope.number("beta_slow").value_or(1);
  config.attention_factor = rope.number("attention_factor");
  rope.allow_only("truncate", true);
  rope.allow_only("mscale", 1.0);
  rope.allow_only("mscale_all_dim", 0.0);
  if (!(config.factor >= 1)) rope.wrong("factor", config.factor, "at least 1");
  if (!(config.beta_fast > 0)) rope.wrong("beta_fast", config.beta_fast, "above 0");
  if (!(config.beta_slow > 0)) rope.wrong("beta_slow", config.beta_slow, "above 0");
  return config;
}

double parse_theta(Object& rope, double otherwise) {
  const double theta = rope.number("rope_theta").value_or(otherwise);
  if (!(theta > 1)) rope.wrong("rope_theta", theta, "above 1");
  return theta;
}

void parse_new_rope(Object& file, const Json& parameters, ModelConfig& model) {
  Object rope(parameters, file.where() + ": rope_parameters");
  const Json* sliding = rope.find("sliding_attention");
  const Json* full = rope.find("full_attention");
  if (sliding == nullptr && full == nullptr) {
    model.rope_theta = parse_theta(rope, model.rope_theta);
    model.rope_full = parse_rope(rope, model.context_length);
    return;
  }
  if (sliding == nullptr) rope.require("sliding_attention");
  if (full == nullptr) rope.require("full_attention");
  Object of_sliding(*sliding, rope.where() + ".sliding_attention");
  Object of_full(*full, rope.where() + ".full_attention");
  const double base = model.rope_theta;
  model.rope_theta = parse_theta(of_full, base);
  if (const double theta = parse_theta(of_sliding, base); theta != model.rope_theta) {
    of_sliding.wrong("rope_theta", theta,
                     concat("that of full_attention, ", model.rope_theta,
                            ": one base for all layers is supported"));
  }
  model.rope_sliding = parse_rope(of_sliding, model.context_length);
  model.rope_full = parse_rope(of_full, model.context_length);
}

void parse_rope_fields(Object& file, ModelConfig& model) {
  model.rope_theta = parse_theta(file, model.rope_theta);
  const Json* scaling = file.find("rope_scaling");
  const Json* parameters = file.find("rope_parameters");
  if (parameters != nullptr) {
    parse_new_rope(file, *parameters, model);
  } else if (scaling != nullptr) {
    Object rope(*scaling, file.where() + ": rope_scaling");
    model.rope_full = parse_rope(rope, model.context_length);
  }
}

void parse_layers(Object& file, ModelConfig& model) {
  model.sliding_window = file.integer("sliding_window", 0);
  if (model.sliding_window != 0) size(file, "sliding_window", model.sliding_window);
  model.layer_types.clear();
  if (const Json* types = file.find("layer_types"); types != nullptr) {
    if (!types->is_array()) file.wrong("layer_types", *types, "an array");
    for (const Json& each : *types) {
      const auto type = each.is_string() ? from_name<LayerType>(each.get<std::string>())
                                         : std::optional<LayerType>();
      if (!type) file.wrong("layer_types", each, "\"sliding_attention\" or \"full_attention\"");
      model.layer_types.push_back(*type);
    }
    if (model.layer_types.size() != static_cast<std::size_t>(model.n_layers)) {
      fail(ErrorKind::kInput, file.where(), ": layer_types names ", model.layer_types.size(),
           " layers, num_hidden_layers is ", model.n_layers);
    }
  } else {
    for (std::int64_t layer = 0; layer < model.n_layers; ++layer) {
      model.layer_types.push_back((layer + 1) % 4 == 0 ? LayerType::kFull : LayerType::kSliding);
    }
  }
  const bool slides = std::find(model.layer_types.begin(), model.layer_types.end(),
                                LayerType::kSliding) != model.layer_types.end();
  if (slides && model.sliding_window == 0) {
    fail(ErrorKind::kInput, file.where(),
         ": sliding_window is missing and layer_types has sliding_attention");
  }
}

std::int64_t token_id(Object& file, const char* key) {
  const Json* value = file.find(key);
  if (value == nullptr) return -1;
  const Json& id = value->is_array() && !value->empty() ? value->front() : *value;
  if (!id.is_number_integer()) file.wrong(key, *value, "a token id");
  return id.get<std::int64_t>();
}

// Fields that would change the result.
void refuse_unsupported(Object& file) {
  if (file.text("model_type", "") != "olmo3") {
    fail(ErrorKind::kInput, file.where(),
         ": model_type = ", printable(file.text("model_type", "missing")),
         ": only olmo3 is supported");
  }
  file.allow_only("hidden_act", "silu");
  file.allow_only("attention_bias", false);
  file.allow_only("mlp_bias", false);
  file.allow_only("attention_dropout", 0.0);
  file.allow_only("tie_word_embeddings", false);
  file.allow_only("partial_rotary_factor", 1.0);
  for (const char* key :
       {"clip_qkv", "quantization_config", "final_logit_softcapping", "attn_logit_softcapping",
        "logit_scale", "embedding_multiplier", "residual_multiplier", "attention_multiplier"}) {
    if (const Json* value = file.find(key); value != nullptr) {
      file.wrong(key, *value, "absent: it is not supported");
    }
  }
}

}  // namespace

HfConfig parse_hf_config(std::string_view json, std::string_view what) {
  const Json document = parse_json(json, what);
  Object file(document, std::string(what));
  refuse_unsupported(file);
  HfConfig config;
  ModelConfig& model = config.model;
  model.preset = Preset::kCustom;
  model.n_layers = size(file, "num_hidden_layers", file.integer("num_hidden_layers"));
  model.d_model = size(file, "hidden_size", file.integer("hidden_size"));
  model.d_ff = size(file, "intermediate_size", file.integer("intermediate_size"));
  model.n_heads = size(file, "num_attention_heads", file.integer("num_attention_heads"));
  model.n_kv_heads =
      size(file, "num_key_value_heads", file.integer("num_key_value_heads", model.n_heads));
  if (const std::int64_t head = file.integer("head_dim", 0); head != 0) {
    model.head_dim = size(file, "head_dim", head);
  } else if (model.d_model % model.n_heads == 0) {
    model.head_dim = model.d_model / model.n_heads;
  } else {
    file.require("head_dim");
  }
  const std::int64_t rows = size(file, "vocab_size", file.integer("vocab_size"));
  model.padded_vocab_size = rows;
  model.vocab_size = size(file, "unpadded_vocab_size", file.integer("unpadded_vocab_size", rows));
  model.context_length =
      size(file, "max_position_embeddings", file.integer("max_position_embeddings", 8192));
  model.norm_eps = file.number("rms_norm_eps").value_or(1e-5);
  model.init_std = file.number("initializer_range").value_or(0.02);
  model.eos_token_id = token_id(file, "eos_token_id");
  model.pad_token_id = token_id(file, "pad_token_id");
  parse_layers(file, model);
  parse_rope_fields(file, model);
  for (const char* inert :
       {"architectures", "transformers_version", "torch_dtype", "dtype", "use_cache",
        "bos_token_id", "_name_or_path", "id2label", "label2id", "auto_map", "return_dict",
        "output_attentions", "output_hidden_states", "chunk_size_feed_forward"}) {
    file.ignore(inert);
  }
  config.ignored = file.not_seen();
  model.validate();
  return config;
}

namespace {

OrderedJson rope_json(const RopeConfig& rope) {
  OrderedJson json;
  json["rope_type"] = "yarn";
  json["factor"] = rope.factor;
  json["original_max_position_embeddings"] = rope.original_context;
  json["beta_fast"] = rope.beta_fast;
  json["beta_slow"] = rope.beta_slow;
  json["attention_factor"] = rope.cos_sin_scale();
  return json;
}

OrderedJson typed_rope_json(const RopeConfig& rope, double theta) {
  OrderedJson json;
  if (rope.scaling == RopeScaling::kNone) {
    json["rope_type"] = "default";
  } else {
    json = rope_json(rope);
  }
  json["rope_theta"] = theta;
  return json;
}

OrderedJson token_json(std::int64_t id) { return id < 0 ? OrderedJson() : OrderedJson(id); }

}  // namespace

std::string hf_config_json(const ModelConfig& config, StoredDType dtype) {
  OrderedJson json;
  json["architectures"] = {"Olmo3ForCausalLM"};
  json["model_type"] = "olmo3";
  json["vocab_size"] = config.vocab_rows();
  if (config.vocab_rows() != config.vocab_size) json["unpadded_vocab_size"] = config.vocab_size;
  json["hidden_size"] = config.d_model;
  json["intermediate_size"] = config.d_ff;
  json["num_hidden_layers"] = config.n_layers;
  json["num_attention_heads"] = config.n_heads;
  json["num_key_value_heads"] = config.n_kv_heads;
  json["head_dim"] = config.head_dim;
  json["hidden_act"] = "silu";
  json["max_position_embeddings"] = config.context_length;
  json["initializer_range"] = config.init_std;
  json["rms_norm_eps"] = config.norm_eps;
  const RopeConfig& sliding =
      config.rope_scaling_on_all_layers ? config.rope_full : config.rope_sliding;
  if (sliding.scaling == RopeScaling::kNone) {
    json["rope_theta"] = config.rope_theta;
    json["rope_scaling"] = config.rope_full.scaling == RopeScaling::kNone
                               ? OrderedJson()
                               : rope_json(config.rope_full);
  } else {
    json["rope_parameters"] = {
        {"sliding_attention", typed_rope_json(sliding, config.rope_theta)},
        {"full_attention", typed_rope_json(config.rope_full, config.rope_theta)}};
  }
  json["attention_bias"] = false;
  json["attention_dropout"] = 0.0;
  json["sliding_window"] =
      config.sliding_window == 0 ? OrderedJson() : OrderedJson(config.sliding_window);
  json["layer_types"] = OrderedJson::array();
  for (std::int64_t layer = 0; layer < config.n_layers; ++layer) {
    json["layer_types"].push_back(to_name(config.layer_type(layer)));
  }
  json["tie_word_embeddings"] = false;
  json["bos_token_id"] = OrderedJson();
  json["eos_token_id"] = token_json(config.eos_token_id);
  json["pad_token_id"] = token_json(config.pad_token_id);
  json["use_cache"] = true;
  json["torch_dtype"] = dtype == StoredDType::kBF16 ? "bfloat16" : "float32";
  return json.dump(2) + "\n";
}

}  // namespace lockstep
