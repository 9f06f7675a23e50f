#include "train/training_data.h"

#include "base/error.h"
#include "base/text.h"
#include "data/mix.h"

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

}  // namespace

TrainingData::TrainingData(FileSystem& fs, const Recipe& recipe, ThreadPool& pool) {
  const DataConfig& data = recipe.data;
  const std::string cache = data.cache_dir.empty() ? recipe.directory() : data.cache_dir;
  fs.create_directories(cache);
  const IndexSpec spec{.sequence_length = static_cast<std::uint64_t>(data.sequence_length),
                       .width = data.token_type,
                       .tokenizer = data.tokenizer,
                       .base_directory = data.base_dir};
  index_ = std::make_unique<DataIndex>(
      open_index(fs, spec, mix_of(fs, data), join_path(cache, "data-index.json"), pool));
  source_ = std::make_unique<FixedInstances>(
      fs, *index_,
      Vocabulary{.size = static_cast<std::uint32_t>(recipe.model.vocab_size),
                 .rows = static_cast<std::uint32_t>(recipe.model.vocab_rows())});
  plan_ = std::make_unique<StepPlan>(
      fs, PlanSpec{.kind = data.order,
                   .seed = static_cast<std::uint64_t>(data.seed),
                   .instances = source_->instances(),
                   .batch = static_cast<std::uint64_t>(recipe.instances_per_step()),
                   .cache_directory = cache});
  options_ = {.microbatch = static_cast<std::uint64_t>(recipe.batch.microbatch),
              .rules = {.document_mask = data.document_mask,
                        .end_of_text = static_cast<std::uint32_t>(recipe.model.eos_token_id),
                        .filter = data.filter.enabled},
              .prefetch = static_cast<std::size_t>(data.prefetch)};
}

std::unique_ptr<Loader> TrainingData::loader(std::int64_t first_batch) const {
  return std::make_unique<Loader>(*source_, *plan_, options_,
                                  static_cast<std::uint64_t>(first_batch));
}

}  // namespace lockstep
