#include "train/training_data.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/mix.h"
#include "data/packed_instances.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

std::vector<MixEntry> mix_of(FileSystem& fs, const DataConfig& data) {
  if (!data.mix.empty()) return read_mix(fs, data.mix, data.tokenizer);
  std::vector<MixEntry> mix;
  for (const auto& path : data.files) mix.push_back({"data", path});
  if (mix.empty()) {
    fail(ErrorKind::kConfig,
         "data.mix: the recipe names no token files; set data.mix or data.files (lockstep tokenize "
         "makes them)");
  }
  return mix;
}

// Token files that lockstep tokenize made say which tokenizer made them.
void check_tokenizer(FileSystem& fs, const DataConfig& data) {
  const std::string path = join_path(data.base_dir, "dataset.json");
  if (data.tokenizer_file.empty() || !fs.exists(path)) return;
  const Json json = parse_json(read_file(fs, path, std::uint64_t{64} << 20), path);
  if (!json.is_object() || !json.contains("tokenizer") || !json["tokenizer"].is_string()) {
    fail(ErrorKind::kData, printable(path), ": field tokenizer is missing");
  }
  const std::string made_by = json["tokenizer"].get<std::string>();
  const std::string given = Tokenizer::load(fs, data.tokenizer_file).fingerprint();
  if (made_by != given) {
    fail(ErrorKind::kConfig, "data.tokenizer_file = ", printable(data.tokenizer_file),
         ": its fingerprint is ", given, ", the token files were made with ", printable(made_by),
         " (", printable(path), "); name the tokenizer that made them");
  }
}

}  // namespace

TrainingData::TrainingData(FileSystem& fs, const Recipe& recipe, ThreadPool& pool) {
  const DataConfig& data = recipe.data;
  check_tokenizer(fs, data);
  const std::string cache = data.cache_dir.empty() ? recipe.directory() : data.cache_dir;
  fs.create_directories(cache);
  const IndexSpec spec{.sequence_length = static_cast<std::uint64_t>(data.sequence_length),
                       .width = data.token_type,
                       .tokenizer = data.tokenizer,
                       .base_directory = data.base_dir};
  index_ = std::make_unique<DataIndex>(
      open_index(fs, spec, mix_of(fs, data), join_path(cache, "data-index.json"), pool));
  const Vocabulary vocabulary{.size = static_cast<std::uint32_t>(recipe.model.vocab_size),
                              .rows = static_cast<std::uint32_t>(recipe.model.vocab_rows())};
  const auto end_of_text = static_cast<std::uint32_t>(recipe.model.eos_token_id);
  if (data.packed) {
    const auto pad =
        static_cast<std::uint32_t>(std::max<std::int64_t>(0, recipe.model.pad_token_id));
    source_ = std::make_unique<PackedInstances>(
        fs, *index_,
        PackingSpec{.end_of_text = end_of_text, .padding = pad, .vocabulary = vocabulary}, pool);
  } else {
    source_ = std::make_unique<FixedInstances>(fs, *index_, vocabulary);
  }
  plan_ = std::make_unique<StepPlan>(
      fs, PlanSpec{.kind = data.order,
                   .seed = static_cast<std::uint64_t>(data.seed),
                   .instances = source_->instances(),
                   .batch = static_cast<std::uint64_t>(recipe.instances_per_step()),
                   .cache_directory = cache});
  options_ = {.microbatch = static_cast<std::uint64_t>(recipe.batch.microbatch),
              .rules = {.document_mask = data.document_mask,
                        .end_of_text = end_of_text,
                        .filter = data.filter.enabled},
              .prefetch = static_cast<std::size_t>(data.prefetch)};
}

std::unique_ptr<Loader> TrainingData::loader(std::int64_t first_batch) const {
  return std::make_unique<Loader>(*source_, *plan_, options_,
                                  static_cast<std::uint64_t>(first_batch));
}

}  // namespace lockstep
