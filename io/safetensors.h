#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "io/file.h"

// Tensors in files: https://github.com/huggingface/safetensors (README, "Format"). An 8-byte
// little-endian header length, a JSON header, then the tensors' bytes without gap or overlap.
// Writing: io/safetensors_writer.h.
namespace lockstep {

// Element types of the format, by their names there.
enum class StoredDType : std::uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};
[[nodiscard]] std::string_view name_of(StoredDType dtype);  // "BF16"
[[nodiscard]] unsigned bits_of(StoredDType dtype);
[[nodiscard]] std::optional<StoredDType> stored_dtype_of_name(std::string_view name);
[[nodiscard]] StoredDType stored_dtype(DType dtype);

struct TensorInfo {
  std::string name;  // data, never a path: show it through printable()
  StoredDType dtype = StoredDType::kF32;
  std::vector<std::uint64_t> shape;  // empty for a scalar
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // of its first byte in its file
  std::uint32_t file = 0;    // index into SafetensorsReader::files()
};

// Reads one file or a sharded set. Holds the headers only; tensor bytes are read when asked for, so
// memory does not grow with the file. Every rule of the format is checked when opening: kData
// naming the file and the tensor or field. All const members may be called from many threads at
// once.
class SafetensorsReader {
 public:
  // A single .safetensors file.
  [[nodiscard]] static SafetensorsReader open_file(FileSystem& fs, const std::string& path);
  // The files named by an index such as model.safetensors.index.json, beside it.
  [[nodiscard]] static SafetensorsReader open_index(FileSystem& fs, const std::string& index_path);
  // `directory`/model.safetensors, else `directory`/model.safetensors.index.json; kInput when there
  // is neither.
  [[nodiscard]] static SafetensorsReader open_model(FileSystem& fs, const std::string& directory);

  // Sorted by (file, offset).
  [[nodiscard]] const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // Of all files together; the first file's value wins.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Null when there is no such tensor.
  [[nodiscard]] const TensorInfo* find(std::string_view name) const;
  // kData, with the nearest name, when there is no such tensor.
  [[nodiscard]] const TensorInfo& at(std::string_view name) const;
  // The path of a tensor's file, for messages.
  [[nodiscard]] const std::string& file_name(const TensorInfo& tensor) const;
  [[nodiscard]] std::uint64_t total_bytes() const;
  // kData listing what is missing and what is unexpected, unless the names are exactly these.
  void require_exactly(std::span<const std::string> names) const;
  // kData unless the shape is this one.
  void require_shape(std::string_view name, std::span<const std::uint64_t> shape) const;

  // Bytes [first_byte, first_byte + out.size()) of the tensor, as stored. kBug when out of range.
  void read_tensor_range(std::string_view name, std::uint64_t first_byte,
                         std::span<std::byte> out) const;
  // Elements [first_element, ...) as f32, from F32, BF16, F16 (exact) or F64 (rounded to nearest
  // even); kInput for other dtypes. NaN and infinity pass. Memory: one 64 KiB buffer.
  void read_f32(std::string_view name, std::uint64_t first_element, std::span<float> out) const;

 private:
  SafetensorsReader() = default;
  void add_file(std::unique_ptr<InputFile> file);
  void index_names();

  std::vector<std::unique_ptr<InputFile>> files_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::uint32_t> by_name_;  // indexes into tensors_, sorted by name
  std::map<std::string, std::string> metadata_;
};

}  // namespace lockstep
