#include "model/kv_cache.h"

#include <cstring>

#include "model/dims.h"

namespace lockstep {

KvCache::KvCache(const ModelConfig& config, Precision precision, std::int64_t sequences,
                 std::int64_t capacity)
    : sequences_(sequences),
      capacity_(capacity),
      memory_(bytes(config, precision, sequences, capacity), "key-value cache") {
  const Dims d = dims_of(config);
  Arena arena(memory_);
  for (std::int64_t layer = 0; layer < d.L; ++layer) {
    keys_.push_back(arena.take(product_dtype(precision), {sequences, capacity, d.kv_width()}));
    values_.push_back(arena.take(product_dtype(precision), {sequences, capacity, d.kv_width()}));
  }
}

void KvCache::copy_from(const KvCache& from, std::span<const std::int64_t> sources) {
  LOCKSTEP_CHECK(std::ssize(sources) == sequences_ && from.length_ <= capacity_, sources.size(),
                 " sources of ", from.length_, " positions for ", sequences_, " of ", capacity_);
  const auto copy = [&](const View& to, const View& source) {
    const auto row_bytes = source.bytes() / (from.sequences_ * from.capacity_);
    for (std::int64_t i = 0; i < sequences_; ++i) {
      const std::int64_t s = sources[static_cast<std::size_t>(i)];
      LOCKSTEP_CHECK(s >= 0 && s < from.sequences_, "sequence ", s, " of ", from.sequences_);
      std::memcpy(static_cast<std::byte*>(to.raw()) + i * capacity_ * row_bytes,
                  static_cast<const std::byte*>(source.raw()) + s * from.capacity_ * row_bytes,
                  static_cast<std::size_t>(from.length_ * row_bytes));
    }
  };
  for (std::size_t layer = 0; layer < keys_.size(); ++layer) {
    copy(keys_[layer], from.keys_[layer]);
    copy(values_[layer], from.values_[layer]);
  }
  length_ = from.length_;
}

void KvCache::truncate(std::int64_t length) {
  LOCKSTEP_CHECK(length >= 0 && length <= length_, length, " of ", length_, " positions");
  length_ = length;
}

CachedKeys KvCache::block(std::int64_t layer) const {
  const auto index = static_cast<std::size_t>(layer);
  return {.k = keys_[index], .v = values_[index], .first = length_};
}

void KvCache::advance(std::int64_t positions) {
  LOCKSTEP_CHECK(length_ + positions <= capacity_, length_, " + ", positions, " of ", capacity_);
  length_ += positions;
}

std::int64_t KvCache::bytes(const ModelConfig& config, Precision precision, std::int64_t sequences,
                            std::int64_t capacity) {
  const Dims d = dims_of(config);
  Arena arena;
  for (std::int64_t i = 0; i < 2 * d.L; ++i) {
    static_cast<void>(arena.take(product_dtype(precision), {sequences, capacity, d.kv_width()}));
  }
  return arena.peak();
}

}  // namespace lockstep
