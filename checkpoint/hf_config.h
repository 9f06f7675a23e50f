#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "model/config.h"

namespace lockstep {

// What a Hugging Face config.json says about an Olmo 3 model.
struct HfConfig {
  ModelConfig model;                 // preset custom, layer_types explicit
  std::vector<std::string> ignored;  // fields that are not known here, as found
};

// Reads the old form (rope_theta, rope_scaling: scaling on full-attention layers only) and the new
// one (rope_parameters, flat or by layer type). Fields that would change the result and are not
// supported (hidden_act other than silu, biases, tied embeddings, soft caps, quantisation, another
// model_type or rope type) are refused by name: kInput, as for missing fields and wrong types.
// `what` names the file in messages.
[[nodiscard]] HfConfig parse_hf_config(std::string_view json, std::string_view what);

// The config.json of a model whose embedding and head have vocab_rows() rows: layer_types always
// explicit, rope in the old form where that can say what the config says. With padded rows,
// vocab_size counts them (Hugging Face wants the tensors' shape there) and unpadded_vocab_size, a
// field of our own, tells how many are real; parse_hf_config reads it back.
[[nodiscard]] std::string hf_config_json(const ModelConfig& config, StoredDType dtype);

}  // namespace lockstep
