#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/state.h"
#include "io/file.h"
#include "io/safetensors.h"

// A checkpoint is a directory step-NNNNNNNN: safetensors files, state.json, recipe.toml,
// config.json (so that the directory is also a Hugging Face model) and manifest.json with the size
// and XXH128 of every file and tensor. It is written under step-NNNNNNNN.tmp-<id>, every file is
// synced, then the directory is renamed and its parent synced: a directory without the suffix is
// whole.
namespace lockstep {

// One parameter's weights and Adam moments, all f32 and of one shape; borrowed.
struct CheckpointTensor {
  std::string name;  // as in Hugging Face's model
  std::vector<std::uint64_t> shape;
  std::span<const float> weight;
  std::span<const float> first_moment;   // m
  std::span<const float> second_moment;  // v
};

struct CheckpointContents {
  TrainingState state;
  std::string recipe_toml;         // resolved
  std::string recipe_fingerprint;  // of what makes it another recipe
  std::string hf_config;           // the text of config.json
  std::vector<CheckpointTensor> tensors;
};

// Writes `checkpoints`/step-N for N = contents.state.step and returns its path; an older directory
// of that name is replaced. Throws kNumeric, before writing anything, when a weight or moment is
// not finite (naming tensor and step), and kIo; after an error no directory of that name has
// appeared or changed and the temporary one is removed. `checkpoints` must exist.
std::string write_checkpoint(FileSystem& fs, const std::string& checkpoints,
                             const CheckpointContents& contents);

enum class TensorPart : std::uint8_t { kWeight, kFirstMoment, kSecondMoment };

// Reads one checkpoint directory. Opening checks the manifest against itself and the presence and
// size of every file; a tensor's checksum is checked when it is read. All errors of content are
// kData and name file and tensor; a path that is no checkpoint is kInput. Members that read are
// thread-safe.
class CheckpointReader {
 public:
  CheckpointReader(FileSystem& fs, const std::string& directory);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const TrainingState& state() const { return state_; }
  [[nodiscard]] const std::string& recipe_toml() const { return recipe_toml_; }
  [[nodiscard]] const std::string& recipe_fingerprint() const { return recipe_fingerprint_; }
  [[nodiscard]] const std::string& hf_config() const { return hf_config_; }
  [[nodiscard]] std::uint64_t bytes() const;
  // Names and shapes of the parameters, sorted by name.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] const std::vector<std::uint64_t>& shape(const std::string& name) const;

  // The whole tensor; kData when the sizes or the checksum differ.
  void read(TensorPart part, const std::string& name, std::span<float> out) const;
  // Reads every byte of every file against its checksum.
  void verify() const;
  // One hash over all state: weights, moments, counters, skip window. Equal for equal state
  // whatever wrote it. From the manifest's checksums: verify() first when the bytes matter.
  [[nodiscard]] std::string digest() const;

 private:
  struct File {
    std::uint64_t bytes = 0;
    std::string checksum;
  };
  struct Tensor {
    std::string file;
    std::string stored_name;
    std::vector<std::uint64_t> shape;
    std::string checksum;
  };
  void parse_manifest(const std::string& text);
  [[nodiscard]] std::string small_file(const char* name) const;
  [[nodiscard]] const Tensor& tensor(TensorPart part, const std::string& name) const;

  FileSystem* fs_;
  std::string directory_;
  TrainingState state_;
  std::string recipe_toml_;
  std::string recipe_fingerprint_;
  std::string hf_config_;
  std::map<std::string, File> files_;
  std::map<std::pair<TensorPart, std::string>, Tensor> tensors_;
  std::unique_ptr<SafetensorsReader> weights_;
  std::unique_ptr<SafetensorsReader> moments_;
};

// Steps of the whole checkpoints in a directory, ascending; a missing directory has none.
[[nodiscard]] std::vector<std::int64_t> list_checkpoints(FileSystem& fs,
                                                         const std::string& checkpoints);

// Opens and verifies the newest checkpoint of the directory that is not damaged, going back one by
// one; each damaged one is reported through `warn`. Null when there is none at all; kData when
// there are some and all are damaged.
[[nodiscard]] std::unique_ptr<CheckpointReader> open_newest(
    FileSystem& fs, const std::string& checkpoints,
    const std::function<void(const std::string&)>& warn);

}  // namespace lockstep
