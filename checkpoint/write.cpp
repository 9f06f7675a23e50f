#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/paths.h"
#include "io/safetensors_writer.h"

namespace lockstep {
namespace {

constexpr std::size_t kPieceFloats = std::size_t{1} << 20;

// What is written where, in the order of the manifest.
class ManifestBuilder {
 public:
  void add_file(const std::string& name, std::uint64_t bytes, const std::string& checksum) {
    OrderedJson file;
    file["name"] = name;
    file["bytes"] = bytes;
    file["xxh128"] = checksum;
    files_.push_back(std::move(file));
  }
  void add_tensor(const std::string& file, const TensorInfo& info, const std::string& checksum) {
    OrderedJson tensor;
    tensor["name"] = info.name;
    tensor["file"] = file;
    tensor["dtype"] = name_of(info.dtype);
    tensor["shape"] = info.shape;
    tensor["offset"] = info.offset;
    tensor["bytes"] = info.bytes;
    tensor["xxh128"] = checksum;
    tensors_.push_back(std::move(tensor));
  }
  [[nodiscard]] std::string text(const CheckpointContents& contents) const {
    OrderedJson json;
    json["format"] = 1;
    json["kind"] = "lockstep-checkpoint";
    json["step"] = contents.state.step;
    json["recipe_fingerprint"] = contents.recipe_fingerprint;
    json["files"] = files_;
    json["tensors"] = tensors_;
    json["self"] = hash128_hex(json.dump(1));
    return json.dump(1) + "\n";
  }

 private:
  OrderedJson files_ = OrderedJson::array();
  OrderedJson tensors_ = OrderedJson::array();
};

void require_finite(const CheckpointContents& contents) {
  for (const auto& tensor : contents.tensors) {
    for (const auto& part : {tensor.weight, tensor.first_moment, tensor.second_moment}) {
      // All exponent bits set: an infinity or a NaN. Integers, so that the loop vectorises.
      std::uint32_t bad = 0;
      for (const float x : part) {
        bad |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(x) & 0x7f800000U) ==
                                          0x7f800000U);
      }
      if (bad != 0) {
        fail(ErrorKind::kNumeric, "step ", contents.state.step, ": tensor ", tensor.name,
             " holds a value that is not finite; not saved, the earlier checkpoints are kept");
      }
    }
  }
}

struct StoredTensor {
  TensorSpec spec;
  std::span<const float> values;
};

void write_tensors(FileSystem& fs, const std::string& directory, const char* file,
                   const std::vector<StoredTensor>& stored, const Metadata& metadata,
                   ManifestBuilder& manifest) {
  std::vector<TensorSpec> specs;
  specs.reserve(stored.size());
  for (const auto& tensor : stored) specs.push_back(tensor.spec);
  const SafetensorsLayout layout = layout_safetensors(specs, metadata);
  Hasher128 whole;
  whole.add(layout.header);
  std::size_t position = 0;
  write_safetensors(fs, join_path(directory, file), specs, metadata,
                    [&](std::size_t spec, const TensorSpec&, const TensorSink& put) {
                      Hasher128 own;
                      auto left = stored[spec].values;
                      while (!left.empty()) {
                        const auto piece = left.first(std::min(left.size(), kPieceFloats));
                        own.add(piece.data(), piece.size_bytes());
                        whole.add(piece.data(), piece.size_bytes());
                        put(std::as_bytes(piece));
                        left = left.subspan(piece.size());
                      }
                      manifest.add_tensor(file, layout.tensors[position++], own.hex());
                    });
  manifest.add_file(file, layout.file_bytes, whole.hex());
}

void write_small(FileSystem& fs, const std::string& directory, const char* name,
                 const std::string& text, ManifestBuilder& manifest) {
  const auto file = fs.open_output(join_path(directory, name), OpenMode::kCreateNew);
  file->append(std::string_view(text));
  file->sync();
  file->close();
  manifest.add_file(name, text.size(), hash128_hex(text));
}

void write_files(FileSystem& fs, const std::string& directory, const CheckpointContents& contents) {
  std::vector<StoredTensor> weights;
  std::vector<StoredTensor> moments;
  for (const auto& tensor : contents.tensors) {
    weights.push_back({{tensor.name, StoredDType::kF32, tensor.shape}, tensor.weight});
    moments.push_back({{"m." + tensor.name, StoredDType::kF32, tensor.shape}, tensor.first_moment});
    moments.push_back(
        {{"v." + tensor.name, StoredDType::kF32, tensor.shape}, tensor.second_moment});
  }
  ManifestBuilder manifest;
  write_tensors(fs, directory, paths::kWeights, weights, {{"format", "pt"}}, manifest);
  write_tensors(fs, directory, paths::kMoments, moments, {}, manifest);
  write_small(fs, directory, paths::kState, state_to_json(contents.state), manifest);
  write_small(fs, directory, paths::kRecipe, contents.recipe_toml, manifest);
  write_small(fs, directory, paths::kHfConfig, contents.hf_config, manifest);
  const auto file = fs.open_output(join_path(directory, paths::kManifest), OpenMode::kCreateNew);
  file->append(std::string_view(manifest.text(contents)));
  file->sync();
  file->close();
  fs.sync_directory(directory);
}

// Removes a directory of files that this code wrote, as far as that is possible.
void remove_directory(FileSystem& fs, const std::string& directory) {
  for (const auto& name : fs.list(directory)) fs.remove(join_path(directory, name));
  fs.remove(directory);
}

}  // namespace

std::string write_checkpoint(FileSystem& fs, const std::string& checkpoints,
                             const CheckpointContents& contents) {
  require_finite(contents);
  if (!fs.is_directory(checkpoints)) {
    fail(ErrorKind::kIo, printable(checkpoints), ": is gone, so step ", contents.state.step,
         " cannot be saved; was the run's directory removed?");
  }
  static std::atomic<int> serial{0};
  const std::string id = concat(getpid(), "-", serial++);
  const std::string name = paths::checkpoint_name(contents.state.step);
  const std::string path = join_path(checkpoints, name);
  const std::string temporary = concat(path, ".tmp-", id);
  fs.create_directories(temporary);
  try {
    write_files(fs, temporary, contents);
    if (fs.exists(path)) {
      const std::string old = concat(path, ".tmp-old-", id);
      fs.rename(path, old);
      fs.rename(temporary, path);
      fs.sync_directory(checkpoints);
      remove_directory(fs, old);
    } else {
      fs.rename(temporary, path);
      fs.sync_directory(checkpoints);
    }
  } catch (const Error&) {
    try {
      if (fs.exists(temporary)) remove_directory(fs, temporary);
    } catch (const Error&) {  // the first error says more; the next start removes the rest
    }
    throw;
  }
  return path;
}

}  // namespace lockstep
