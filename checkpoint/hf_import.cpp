#include "checkpoint/hf_import.h"

#include <algorithm>

#include "base/text.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/paths.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{1} << 20;
constexpr std::int64_t kPiece = std::int64_t{1} << 20;

HfConfig read_config(FileSystem& fs, const std::string& directory, const HfImportOptions& options) {
  if (!fs.is_directory(directory)) {
    fail(ErrorKind::kInput, printable(directory),
         ": not a directory; wanted one with config.json "
         "and model.safetensors");
  }
  const std::string path = join_path(directory, paths::kHfConfig);
  HfConfig config = parse_hf_config(read_file(fs, path, kMaxConfigBytes), path);
  if (options.vocab_size) config.model.vocab_size = *options.vocab_size;
  config.model.rope_scaling_on_all_layers = options.rope_scaling_on_all_layers;
  return config;
}

std::vector<std::uint64_t> stored_shape(const Parameter& parameter) {
  return {parameter.shape.begin(), parameter.shape.end()};
}

}  // namespace

bool is_vocabulary_matrix(const Parameter& parameter) {
  return parameter.name == "model.embed_tokens.weight" || parameter.name == "lm_head.weight";
}

HfModel::HfModel(FileSystem& fs, const std::string& directory, const HfImportOptions& options)
    : directory_(directory), tensors_(SafetensorsReader::open_model(fs, directory)) {
  HfConfig config = read_config(fs, directory, options);
  config_ = std::move(config.model);
  ignored_ = std::move(config.ignored);
  check_tensors();
}

void HfModel::check_tensors() {
  // The rows that are there, which a config.json of the unpadded model does not tell.
  const TensorInfo& embedding = tensors_.at("model.embed_tokens.weight");
  if (embedding.shape.size() != 2) {
    fail(ErrorKind::kData, printable(tensors_.file_name(embedding)), ": tensor ", embedding.name,
         " has ", embedding.shape.size(), " dims, wanted 2");
  }
  const std::uint64_t rows = embedding.shape[0];
  if (rows < static_cast<std::uint64_t>(config_.vocab_size)) {
    fail(ErrorKind::kData, printable(tensors_.file_name(embedding)), ": tensor ", embedding.name,
         " has ", rows, " rows, config.json wants vocab_size = ", config_.vocab_size);
  }
  config_.padded_vocab_size = static_cast<std::int64_t>(rows);
  config_.validate();
  const ParameterTable table(config_);
  std::vector<std::string> names;
  for (const Parameter& parameter : table.parameters()) names.push_back(parameter.name);
  tensors_.require_exactly(names);
  for (const Parameter& parameter : table.parameters()) {
    tensors_.require_shape(parameter.name, stored_shape(parameter));
  }
}

void HfModel::read(const Parameter& parameter, std::int64_t first, std::span<float> out) const {
  const TensorInfo& stored = tensors_.at(parameter.name);
  const auto begin = static_cast<std::uint64_t>(first);
  std::uint64_t there = stored.elements > begin ? stored.elements - begin : 0;
  there = std::min<std::uint64_t>(there, out.size());
  if (there < out.size() && !is_vocabulary_matrix(parameter)) {
    fail(ErrorKind::kBug, parameter.name, ": element ", first + std::ssize(out), " of ",
         stored.elements);
  }
  const auto stored_part = out.first(static_cast<std::size_t>(there));
  if (!stored_part.empty()) tensors_.read_f32(parameter.name, begin, stored_part);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(there), out.end(), 0.0F);
}

void HfModel::load(const ParameterTable& table, const View& flat, ThreadPool& pool) const {
  const ParameterTable own(config_);
  struct Piece {
    const Parameter* parameter;
    std::int64_t first;
  };
  std::vector<Piece> pieces;
  for (const Parameter& parameter : table.parameters()) {
    const Parameter* stored = own.find(parameter.name);
    std::vector<std::int64_t> wanted = parameter.shape;
    if (stored != nullptr && is_vocabulary_matrix(parameter) &&
        wanted.front() >= config_.vocab_size) {
      wanted.front() = stored->shape.front();
    }
    if (stored == nullptr || stored->shape != wanted ||
        own.parameters().size() != table.parameters().size()) {
      fail(ErrorKind::kInput, printable(directory_), ": holds another model: ", parameter.name,
           " of the recipe is ", parameter.shape.front(), " x ", parameter.shape.back(),
           stored == nullptr
               ? ", missing here"
               : concat(", here ", stored->shape.front(), " x ", stored->shape.back()));
    }
    for (std::int64_t first = 0; first < parameter.size; first += kPiece) {
      pieces.push_back({&parameter, first});
    }
  }
  auto* values = flat.data<float>();
  pool.parallel_for(std::ssize(pieces), [&](std::int64_t index, int) {
    const auto [parameter, first] = pieces[static_cast<std::size_t>(index)];
    const auto count = static_cast<std::size_t>(std::min(kPiece, parameter->size - first));
    read(*parameter, first, {values + parameter->offset + first, count});
  });
}

}  // namespace lockstep
