#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/order.h"
#include "io/mapped_file.h"

namespace lockstep {

// The shuffled uint32 indices of an epoch, in memory or mapped from a cache file. In the cache,
// global_indices_dataset_size{n}_epoch{e}_seed{s}_v1.npy holds the raw little-endian uint32 values
// (OLMo-core's name and format) and the same name with .json appended says how many there are and
// their checksum. Move-only; immutable, thread-safe.
class ShuffledIndices {
 public:
  // With a cache directory: the cached file, checked whole against its checksum (kData when
  // damaged: the text says which file to delete), else built and put there for the next time. A
  // data file without its .json was never finished and is built again.
  [[nodiscard]] static ShuffledIndices make(FileSystem& fs, const OrderSpec& spec);

  [[nodiscard]] std::span<const std::uint32_t> values() const;

 private:
  ShuffledIndices() = default;
  std::unique_ptr<std::uint32_t[]> memory_;
  std::size_t count_ = 0;
  std::optional<MappedFile> file_;
};

// Of the data file, without the directory.
[[nodiscard]] std::string order_cache_name(const OrderSpec& spec);

}  // namespace lockstep
