#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "model/config.h"
#include "model/parameters.h"
#include "tensor/view.h"

namespace lockstep {

struct HfImportOptions {
  // Real ids of a checkpoint whose config.json counts padded rows as vocabulary.
  std::optional<std::int64_t> vocab_size = std::nullopt;
  // Stretch the sliding layers too, as some published tooling does (ModelConfig).
  bool rope_scaling_on_all_layers = false;
};

// A model in Hugging Face's layout: a directory with config.json and model.safetensors or a sharded
// index; a run's checkpoint is one too. Opening reads headers only and checks that every tensor of
// the model is there once, with its shape, and none besides: kInput and kData name the file, the
// field or the tensor. Embedding and head may have any number of rows from vocab_size on. Const
// members are thread-safe. `fs` must outlive it.
class HfModel {
 public:
  HfModel(FileSystem& fs, const std::string& directory, const HfImportOptions& options = {});

  // padded_vocab_size is the file's number of rows.
  [[nodiscard]] const ModelConfig& config() const { return config_; }
  // Fields of config.json that are not known here and were passed over.
  [[nodiscard]] const std::vector<std::string>& ignored_fields() const { return ignored_; }
  [[nodiscard]] const SafetensorsReader& tensors() const { return tensors_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }

  // Elements of a parameter as f32. Of embedding and head, the parameter may have more rows than
  // the file (they read as zeros) or fewer, down to vocab_size.
  void read(const Parameter& parameter, std::int64_t first, std::span<float> out) const;

  // Fills a flat array of the layout of `table`, whose config differs from this one in the padded
  // rows at most (kInput otherwise).
  void load(const ParameterTable& table, const View& flat, ThreadPool& pool) const;

 private:
  void check_tensors();

  std::string directory_;
  ModelConfig config_;
  std::vector<std::string> ignored_;
  SafetensorsReader tensors_;
};

// Whether a parameter has one row per id of the vocabulary.
[[nodiscard]] bool is_vocabulary_matrix(const Parameter& parameter);

}  // namespace lockstep
