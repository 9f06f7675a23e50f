#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/safetensors.h"
#include "model/config.h"
#include "model/parameters.h"

namespace lockstep {

struct HfExportOptions {
  StoredDType dtype = StoredDType::kBF16;  // or kF32
  // Files are split so that none holds more than this.
  std::uint64_t max_shard_bytes = std::uint64_t{5} * 1000 * 1000 * 1000;
  bool overwrite = false;  // replace a model that is already there
};

// Gives elements [first, first + out.size()) of a parameter.
using ParameterSource =
    std::function<void(const Parameter&, std::int64_t first, std::span<float> out)>;

// Writes a model in Hugging Face's layout: safetensors, then config.json last, each file
// atomically. Embedding and head get config.vocab_rows() rows, so give a config whose
// padded_vocab_size is vocab_size for a model without padded rows. `source` is asked for every
// element once, in pieces, in file order: memory does not grow with the model. `directory` is made;
// kInput when it already holds a model (without `overwrite`). kNumeric naming the tensor when a
// value is not finite. Returns the names of the files written.
std::vector<std::string> export_hf(FileSystem& fs, const std::string& directory,
                                   const ModelConfig& config, const HfExportOptions& options,
                                   const ParameterSource& source);

// Copies tokenizer files that lie in `from` (tokenizer.json, tokenizer_config.json,
// special_tokens_map.json, generation_config.json) to `to`; returns their names.
std::vector<std::string> copy_tokenizer_files(FileSystem& fs, const std::string& from,
                                              const std::string& to);

// The config as exported without padded rows.
[[nodiscard]] ModelConfig without_padding(ModelConfig config);

}  // namespace lockstep
