#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/safetensors.h"

namespace lockstep {

struct TensorSpec {
  std::string name;
  StoredDType dtype = StoredDType::kF32;
  std::vector<std::uint64_t> shape;
};

using Metadata = std::map<std::string, std::string>;

// Where each byte of a file goes, known before any tensor is. The same specs and metadata give the
// same bytes: tensors by (dtype size descending, name), header padded with spaces so that the
// payload starts at a multiple of 8.
struct SafetensorsLayout {
  std::string header;               // the length and the JSON: all bytes before the payload
  std::vector<TensorInfo> tensors;  // in file order
  std::vector<std::size_t> order;   // order[i] is the index in `specs` of tensors[i]
  std::uint64_t file_bytes = 0;
};
// kBug when a name is given twice, is "__metadata__" or is not UTF-8, or a size overflows.
[[nodiscard]] SafetensorsLayout layout_safetensors(std::span<const TensorSpec> specs,
                                                   const Metadata& metadata);

// Takes the next bytes of the tensor being written, in pieces of any size.
using TensorSink = std::function<void(std::span<const std::byte>)>;
// Called once a tensor, in file order; gives all its bytes to `put` before it returns. `spec` is
// the index into the specs.
using TensorSource =
    std::function<void(std::size_t spec, const TensorSpec&, const TensorSink& put)>;

// Writes atomically and durably (io/atomic_file.h), with memory for the header and one write buffer
// only. kBug when the source gives more or fewer bytes than the tensor has. What the source throws
// passes through and nothing appears.
void write_safetensors(FileSystem& fs, const std::string& path, std::span<const TensorSpec> specs,
                       const Metadata& metadata, const TensorSource& source);

// As Hugging Face models are split: specs in the given order fill shards of at most
// `max_shard_bytes` of payload (a larger tensor has a shard of its own),
// model-00001-of-0000n.safetensors, and model.safetensors.index.json is written last; a single
// shard is model.safetensors without an index. Returns the names written. `directory` must exist.
std::vector<std::string> write_safetensors_sharded(FileSystem& fs, const std::string& directory,
                                                   std::span<const TensorSpec> specs,
                                                   const Metadata& metadata,
                                                   std::uint64_t max_shard_bytes,
                                                   const TensorSource& source);

}  // namespace lockstep
