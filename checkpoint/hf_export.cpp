#include "checkpoint/hf_export.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/paths.h"
#include "io/safetensors_writer.h"

namespace lockstep {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 18;

bool is_model_file(const std::string& name) {
  return name == paths::kHfConfig || name == "model.safetensors.index.json" ||
         (name.starts_with("model") && name.ends_with(".safetensors"));
}

void prepare_directory(FileSystem& fs, const std::string& directory, bool overwrite) {
  fs.create_directories(directory);
  for (const std::string& name : fs.list(directory)) {
    if (!is_model_file(name)) continue;
    if (!overwrite) {
      fail(ErrorKind::kInput, printable(directory), ": already holds ", printable(name),
           "; name another directory or pass --overwrite");
    }
    fs.remove(join_path(directory, name));
  }
}

void require_finite(const Parameter& parameter, std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) {
      fail(ErrorKind::kNumeric, "tensor ", parameter.name,
           " holds a value that is not finite; not exported");
    }
  }
}

void put_parameter(const Parameter& parameter, StoredDType dtype, const ParameterSource& source,
                   const TensorSink& put) {
  std::vector<float> values(static_cast<std::size_t>(std::min(kPiece, parameter.size)));
  std::vector<bf16> rounded(dtype == StoredDType::kBF16 ? values.size() : 0);
  for (std::int64_t first = 0; first < parameter.size; first += kPiece) {
    const auto count = static_cast<std::size_t>(std::min(kPiece, parameter.size - first));
    const auto piece = std::span(values).first(count);
    source(parameter, first, piece);
    require_finite(parameter, piece);
    if (dtype == StoredDType::kF32) {
      put(std::as_bytes(piece));
      continue;
    }
    std::transform(piece.begin(), piece.end(), rounded.begin(), to_bf16);
    put(std::as_bytes(std::span(rounded).first(count)));
  }
}

}  // namespace

std::vector<std::string> export_hf(FileSystem& fs, const std::string& directory,
                                   const ModelConfig& config, const HfExportOptions& options,
                                   const ParameterSource& source) {
  LOCKSTEP_CHECK(options.dtype == StoredDType::kBF16 || options.dtype == StoredDType::kF32,
                 name_of(options.dtype));
  prepare_directory(fs, directory, options.overwrite);
  const ParameterTable table(config);
  std::vector<TensorSpec> specs;
  for (const Parameter& parameter : table.parameters()) {
    specs.push_back(
        {parameter.name, options.dtype, {parameter.shape.begin(), parameter.shape.end()}});
  }
  std::vector<std::string> names =
      write_safetensors_sharded(fs, directory, specs, {{"format", "pt"}}, options.max_shard_bytes,
                                [&](std::size_t, const TensorSpec& spec, const TensorSink& put) {
                                  put_parameter(table.at(spec.name), options.dtype, source, put);
                                });
  write_file_atomic(fs, join_path(directory, paths::kHfConfig),
                    std::string_view(hf_config_json(config, options.dtype)));
  names.emplace_back(paths::kHfConfig);
  return names;
}

std::vector<std::string> copy_tokenizer_files(FileSystem& fs, const std::string& from,
                                              const std::string& to) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;
  std::vector<std::string> copied;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "generation_config.json"}) {
    const std::string path = join_path(from, name);
    if (!fs.exists(path)) continue;
    write_file_atomic(fs, join_path(to, name), std::string_view(read_file(fs, path, kMaxBytes)));
    copied.emplace_back(name);
  }
  return copied;
}

ModelConfig without_padding(ModelConfig config) {
  config.padded_vocab_size = config.vocab_size;
  return config;
}

}  // namespace lockstep
