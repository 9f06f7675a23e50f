#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/paths.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMaxSmallBytes = std::uint64_t{16} << 20;

std::string prefix_of(TensorPart part) {
  switch (part) {
    case TensorPart::kWeight:
      return "";
    case TensorPart::kFirstMoment:
      return "m.";
    case TensorPart::kSecondMoment:
      return "v.";
  }
  return "";
}

std::string hash_file(const InputFile& file) {
  Hasher128 hasher;
  std::vector<std::byte> piece(std::size_t{1} << 22);
  for (std::uint64_t offset = 0; offset < file.size(); offset += piece.size()) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), file.size() - offset));
    file.read_at(offset, std::span(piece).first(count));
    hasher.add(piece.data(), count);
  }
  return hasher.hex();
}

}  // namespace

CheckpointReader::CheckpointReader(FileSystem& fs, const std::string& directory)
    : fs_(&fs), directory_(directory) {
  const std::string manifest = join_path(directory, paths::kManifest);
  if (!fs.is_directory(directory)) {
    fail(ErrorKind::kInput, printable(directory), ": no such checkpoint directory");
  }
  if (!fs.exists(manifest)) {
    fail(ErrorKind::kData, printable(manifest), ": missing; this is not a whole checkpoint");
  }
  parse_manifest(read_file(fs, manifest, kMaxManifestBytes));
  for (const char* name :
       {paths::kWeights, paths::kMoments, paths::kState, paths::kRecipe, paths::kHfConfig}) {
    if (!files_.contains(name)) fail(ErrorKind::kData, manifest, ": does not list ", name);
  }
  for (const auto& [name, file] : files_) {
    const std::string path = join_path(directory, name);
    if (fs.kind(path, FollowSymlinks::kYes) != FileKind::kRegular) {
      fail(ErrorKind::kData, printable(path), ": missing, though the manifest lists it");
    }
    if (const auto bytes = fs.file_size(path); bytes != file.bytes) {
      fail(ErrorKind::kData, printable(path), ": ", bytes, " bytes, the manifest says ",
           file.bytes);
    }
  }
  state_ = state_from_json(small_file(paths::kState), join_path(directory, paths::kState));
  recipe_toml_ = small_file(paths::kRecipe);
  hf_config_ = small_file(paths::kHfConfig);
  weights_ = std::make_unique<SafetensorsReader>(
      SafetensorsReader::open_file(fs, join_path(directory, paths::kWeights)));
  moments_ = std::make_unique<SafetensorsReader>(
      SafetensorsReader::open_file(fs, join_path(directory, paths::kMoments)));
}

void CheckpointReader::parse_manifest(const std::string& text) {
  const std::string what = join_path(directory_, paths::kManifest);
  const auto damaged = [&](const std::string& why) {
    fail(ErrorKind::kData, printable(what), ": damaged: ", why);
  };
  OrderedJson json;
  try {
    static_cast<void>(parse_json(text, what));  // its limits
    json = OrderedJson::parse(text);
    if (json.dump(1) + "\n" != text) damaged("not as it was written");
    const std::string self = json.at("self").get<std::string>();
    json.erase("self");
    if (hash128_hex(json.dump(1)) != self) damaged("its own checksum differs");
    if (json.at("format") != 1) damaged("format " + json.at("format").dump() + ", wanted 1");
    recipe_fingerprint_ = json.at("recipe_fingerprint").get<std::string>();
    for (const auto& file : json.at("files")) {
      files_[file.at("name").get<std::string>()] = {file.at("bytes").get<std::uint64_t>(),
                                                    file.at("xxh128").get<std::string>()};
    }
    for (const auto& entry : json.at("tensors")) {
      Tensor tensor{entry.at("file").get<std::string>(), entry.at("name").get<std::string>(),
                    entry.at("shape").get<std::vector<std::uint64_t>>(),
                    entry.at("xxh128").get<std::string>()};
      TensorPart part = TensorPart::kWeight;
      std::string name = tensor.stored_name;
      if (tensor.file == paths::kMoments) {
        part = name.starts_with("m.") ? TensorPart::kFirstMoment : TensorPart::kSecondMoment;
        name = name.substr(2);
      }
      tensors_[{part, name}] = std::move(tensor);
    }
  } catch (const OrderedJson::exception& error) {
    damaged(printable(error.what()));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kData) throw;
    damaged(error.what());
  }
}

std::string CheckpointReader::small_file(const char* name) const {
  const std::string path = join_path(directory_, name);
  std::string text = read_file(*fs_, path, kMaxSmallBytes);
  if (hash128_hex(text) != files_.at(name).checksum) {
    fail(ErrorKind::kData, printable(path), ": checksum differs from the manifest's");
  }
  return text;
}

std::uint64_t CheckpointReader::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [name, file] : files_) sum += file.bytes;
  return sum;
}

std::vector<std::string> CheckpointReader::names() const {
  std::vector<std::string> names;
  for (const auto& [key, tensor] : tensors_) {
    if (key.first == TensorPart::kWeight) names.push_back(key.second);
  }
  return names;
}

const std::vector<std::uint64_t>& CheckpointReader::shape(const std::string& name) const {
  return tensor(TensorPart::kWeight, name).shape;
}

const CheckpointReader::Tensor& CheckpointReader::tensor(TensorPart part,
                                                         const std::string& name) const {
  const auto found = tensors_.find({part, name});
  if (found == tensors_.end()) {
    fail(ErrorKind::kData, printable(directory_), ": tensor ", prefix_of(part), printable(name),
         " is missing from the manifest");
  }
  return found->second;
}

void CheckpointReader::read(TensorPart part, const std::string& name, std::span<float> out) const {
  const Tensor& wanted = tensor(part, name);
  const auto& reader = part == TensorPart::kWeight ? *weights_ : *moments_;
  const TensorInfo& info = reader.at(wanted.stored_name);
  const std::string where = join_path(directory_, wanted.file);
  if (info.dtype != StoredDType::kF32 || info.shape != wanted.shape ||
      info.bytes != out.size_bytes()) {
    fail(ErrorKind::kData, printable(where), ": tensor ", printable(wanted.stored_name), " has ",
         info.bytes, " bytes of ", name_of(info.dtype), ", wanted ", out.size_bytes(), " of F32");
  }
  reader.read_tensor_range(wanted.stored_name, 0, std::as_writable_bytes(out));
  Hasher128 hasher;
  hasher.add(out.data(), out.size_bytes());
  if (hasher.hex() != wanted.checksum) {
    fail(ErrorKind::kData, printable(where), ": tensor ", printable(wanted.stored_name),
         ": checksum differs from the manifest's; the file is damaged");
  }
}

void CheckpointReader::verify() const {
  for (const auto& [name, file] : files_) {
    const auto input = fs_->open_input(join_path(directory_, name));
    if (input->size() == file.bytes && hash_file(*input) == file.checksum) continue;
    std::vector<float> values;
    for (const auto& [key, tensor] : tensors_) {  // say which tensor, when one it is
      if (tensor.file != name) continue;
      std::uint64_t elements = 1;
      for (const auto dim : tensor.shape) elements *= dim;
      values.resize(elements);
      read(key.first, key.second, values);
    }
    fail(ErrorKind::kData, printable(input->name()), ": checksum differs from the manifest's");
  }
}

std::string CheckpointReader::digest() const {
  Hasher128 hasher;
  for (const auto& [key, tensor] : tensors_) {
    hasher.add(prefix_of(key.first) + key.second + "\n");
    for (const auto dim : tensor.shape) hasher.add_value(dim);
    hasher.add(tensor.checksum);
  }
  for (const std::int64_t count : {state_.step, state_.adam_step, state_.tokens, state_.next_batch,
                                   state_.skip.skipped_in_row, state_.skip.skipped_total}) {
    hasher.add_value(count);
  }
  for (const auto* window : {&state_.skip.losses, &state_.skip.grad_norms}) {
    hasher.add_value(static_cast<std::uint64_t>(window->size()));
    for (const double value : *window) hasher.add_value(value);
  }
  return hasher.hex();
}

std::vector<std::int64_t> list_checkpoints(FileSystem& fs, const std::string& checkpoints) {
  std::vector<std::int64_t> steps;
  if (!fs.is_directory(checkpoints)) return steps;
  for (const auto& name : fs.list(checkpoints)) {
    if (const auto step = paths::step_of(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::unique_ptr<CheckpointReader> open_newest(FileSystem& fs, const std::string& checkpoints,
                                              const std::function<void(const std::string&)>& warn) {
  auto steps = list_checkpoints(fs, checkpoints);
  if (steps.empty()) return nullptr;
  std::string last_error;
  for (; !steps.empty(); steps.pop_back()) {
    try {
      auto reader = std::make_unique<CheckpointReader>(
          fs, join_path(checkpoints, paths::checkpoint_name(steps.back())));
      reader->verify();
      return reader;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      last_error = error.what();
      warn(
          concat("checkpoint of step ", steps.back(), " is damaged and passed over: ", last_error));
    }
  }
  fail(ErrorKind::kData, printable(checkpoints),
       ": every checkpoint is damaged; the oldest: ", last_error);
}

}  // namespace lockstep
