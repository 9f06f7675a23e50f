#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "io/safetensors_header.h"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMaxFiles = 4096;

// IEEE binary16; every value is one of binary32.
float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> 10U) & 0x1fU;
  const std::uint32_t fraction = half & 0x3ffU;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xffU : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23U | fraction << 13U);
}

template <class Stored, class Convert>
void convert(std::span<const std::byte> bytes, std::span<float> out, const Convert& to_f32) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored value;  // copied, since the payload need not be aligned
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    out[i] = to_f32(value);
  }
}

void convert(StoredDType dtype, std::span<const std::byte> bytes, std::span<float> out) {
  switch (dtype) {
    case StoredDType::kBF16:
      return convert<std::uint16_t>(bytes, out,
                                    [](std::uint16_t bits) { return to_float(bf16{bits}); });
    case StoredDType::kF16:
      return convert<std::uint16_t>(bytes, out, half_to_float);
    case StoredDType::kF64:
      return convert<double>(bytes, out, [](double value) { return static_cast<float>(value); });
    default:
      fail(ErrorKind::kBug, "no conversion from ", name_of(dtype));
  }
}

bool converts_to_f32(StoredDType dtype) {
  return dtype == StoredDType::kF32 || dtype == StoredDType::kBF16 || dtype == StoredDType::kF16 ||
         dtype == StoredDType::kF64;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (const auto dim : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

// "a", "b", "c" and 4 more.
std::string some_of(const std::vector<std::string_view>& names) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += concat(i == 0 ? "" : ", ", "\"", printable(names[i], 80), "\"");
  }
  if (names.size() > kShown) text += concat(" and ", names.size() - kShown, " more");
  return text;
}

}  // namespace

void SafetensorsReader::add_file(std::unique_ptr<InputFile> file) {
  auto header = read_safetensors_header(*file);
  for (auto& tensor : header.tensors) {
    tensor.file = static_cast<std::uint32_t>(files_.size());
    tensors_.push_back(std::move(tensor));
  }
  metadata_.merge(header.metadata);
  files_.push_back(std::move(file));
}

void SafetensorsReader::index_names() {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return tensors_[a].name < tensors_[b].name; });
  for (std::size_t i = 1; i < by_name_.size(); ++i) {
    const auto& first = tensors_[by_name_[i - 1]];
    const auto& second = tensors_[by_name_[i]];
    if (first.name == second.name) {
      fail(ErrorKind::kData, "tensor \"", printable(first.name),
           "\" is in two files: ", printable(file_name(first)), " and ",
           printable(file_name(second)));
    }
  }
}

SafetensorsReader SafetensorsReader::open_file(FileSystem& fs, const std::string& path) {
  SafetensorsReader reader;
  reader.add_file(fs.open_input(path));
  reader.index_names();
  return reader;
}

SafetensorsReader SafetensorsReader::open_index(FileSystem& fs, const std::string& index_path) {
  const auto map = parse_weight_map(read_file(fs, index_path, kMaxIndexBytes), index_path);
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) names.insert(file);
  if (names.size() > kMaxFiles) {
    fail(ErrorKind::kData, printable(index_path), ": names ", names.size(), " files, at most ",
         kMaxFiles, " are allowed");
  }
  SafetensorsReader reader;
  std::map<std::string, std::uint32_t> numbers;
  for (const auto& name : names) {
    numbers[name] = static_cast<std::uint32_t>(reader.files_.size());
    reader.add_file(fs.open_input_in(parent_directory(index_path), name));
  }
  reader.index_names();
  for (const auto& [tensor, file] : map) {
    const auto* found = reader.find(tensor);
    if (found == nullptr || found->file != numbers[file]) {
      fail(ErrorKind::kData, printable(index_path), ": tensor \"", printable(tensor),
           "\" should be in ", printable(file), ", but it is ",
           found == nullptr ? "in no file" : "in " + printable(reader.file_name(*found)));
    }
  }
  for (const auto& tensor : reader.tensors_) {
    if (!map.contains(tensor.name)) {
      fail(ErrorKind::kData, printable(reader.file_name(tensor)), ": tensor \"",
           printable(tensor.name), "\" is not in the weight_map of ", printable(index_path));
    }
  }
  return reader;
}

SafetensorsReader SafetensorsReader::open_model(FileSystem& fs, const std::string& directory) {
  const auto single = join_path(directory, "model.safetensors");
  const auto index = join_path(directory, "model.safetensors.index.json");
  if (fs.exists(single)) return open_file(fs, single);
  if (fs.exists(index)) return open_index(fs, index);
  fail(ErrorKind::kInput, printable(directory),
       " holds neither model.safetensors nor model.safetensors.index.json");
}

const TensorInfo* SafetensorsReader::find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](std::uint32_t i, std::string_view n) { return tensors_[i].name < n; });
  if (found == by_name_.end() || tensors_[*found].name != name) return nullptr;
  return &tensors_[*found];
}

const TensorInfo& SafetensorsReader::at(std::string_view name) const {
  if (const auto* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const auto& tensor : tensors_) names.push_back(tensor.name);
  const auto nearest = nearest_name(name, names);
  fail(ErrorKind::kData, files_.empty() ? "no file" : printable(files_.front()->name()),
       files_.size() > 1 ? concat(" and ", files_.size() - 1, " more") : "", ": no tensor \"",
       printable(name), "\"",
       nearest.empty() ? "" : concat("; the nearest name is \"", printable(nearest), "\""));
}

const std::string& SafetensorsReader::file_name(const TensorInfo& tensor) const {
  return files_.at(tensor.file)->name();
}

std::uint64_t SafetensorsReader::total_bytes() const {
  std::uint64_t total = 0;
  for (const auto& tensor : tensors_) total += tensor.bytes;
  return total;
}

void SafetensorsReader::require_exactly(std::span<const std::string> names) const {
  const std::set<std::string_view> wanted(names.begin(), names.end());
  std::vector<std::string_view> missing;
  std::vector<std::string_view> unexpected;
  for (const auto& name : wanted) {
    if (find(name) == nullptr) missing.push_back(name);
  }
  for (const auto i : by_name_) {
    if (!wanted.contains(tensors_[i].name)) unexpected.push_back(tensors_[i].name);
  }
  if (missing.empty() && unexpected.empty()) return;
  fail(ErrorKind::kData, files_.empty() ? "no file" : printable(files_.front()->name()),
       ": not the tensors of this model", missing.empty() ? "" : "; missing: " + some_of(missing),
       unexpected.empty() ? "" : "; unexpected: " + some_of(unexpected));
}

void SafetensorsReader::require_shape(std::string_view name,
                                      std::span<const std::uint64_t> shape) const {
  const auto& tensor = at(name);
  if (std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end())) return;
  fail(ErrorKind::kData, printable(file_name(tensor)), ": tensor \"", printable(name),
       "\" has shape ", shape_text(tensor.shape), ", but ", shape_text(shape), " is wanted");
}

void SafetensorsReader::read_tensor_range(std::string_view name, std::uint64_t first_byte,
                                          std::span<std::byte> out) const {
  const auto& tensor = at(name);
  LOCKSTEP_CHECK(first_byte <= tensor.bytes && out.size() <= tensor.bytes - first_byte, "tensor ",
                 printable(name), " has ", tensor.bytes, " bytes; asked for ", out.size(), " from ",
                 first_byte);
  try {
    files_[tensor.file]->read_at(tensor.offset + first_byte, out);
  } catch (const Error& error) {
    fail(error.kind(), "tensor \"", printable(name), "\": ", error.what());
  }
}

void SafetensorsReader::read_f32(std::string_view name, std::uint64_t first_element,
                                 std::span<float> out) const {
  const auto& tensor = at(name);
  if (!converts_to_f32(tensor.dtype)) {
    fail(ErrorKind::kInput, printable(file_name(tensor)), ": tensor \"", printable(name),
         "\" holds ", name_of(tensor.dtype), ", but F32, BF16, F16 or F64 is wanted");
  }
  LOCKSTEP_CHECK(first_element <= tensor.elements && out.size() <= tensor.elements - first_element,
                 "tensor ", printable(name), " has ", tensor.elements, " elements; asked for ",
                 out.size(), " from ", first_element);
  const std::uint64_t item = bits_of(tensor.dtype) / 8;
  if (tensor.dtype == StoredDType::kF32) {
    return read_tensor_range(name, first_element * item, std::as_writable_bytes(out));
  }
  std::vector<std::byte> buffer(std::size_t{1} << 16);
  while (!out.empty()) {
    const auto part = out.first(std::min(out.size(), buffer.size() / item));
    const auto bytes = std::span(buffer).first(part.size() * item);
    read_tensor_range(name, first_element * item, bytes);
    convert(tensor.dtype, bytes, part);
    first_element += part.size();
    out = out.subspan(part.size());
  }
}

}  // namespace lockstep
