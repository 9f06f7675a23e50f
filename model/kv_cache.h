#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/block.h"
#include "model/config.h"
#include "model/numerics.h"
#include "tensor/buffer.h"

namespace lockstep {

// Keys and values of B sequences that grow together, up to `capacity` positions. Move-only.
class KvCache {
 public:
  KvCache(const ModelConfig& config, Precision precision, std::int64_t sequences,
          std::int64_t capacity);

  [[nodiscard]] std::int64_t sequences() const { return sequences_; }
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }
  [[nodiscard]] std::int64_t length() const { return length_; }
  // Becomes copies: sequence i holds what sequence sources[i] of `from` does. kBug unless there is
  // one source a sequence and room for their positions.
  void copy_from(const KvCache& from, std::span<const std::int64_t> sources);
  // Forgets the positions from `length` on.
  void truncate(std::int64_t length);

  // Where a block finds and puts its keys and values.
  [[nodiscard]] CachedKeys block(std::int64_t layer) const;
  // After all blocks wrote `positions` more.
  void advance(std::int64_t positions);

  [[nodiscard]] static std::int64_t bytes(const ModelConfig& config, Precision precision,
                                          std::int64_t sequences, std::int64_t capacity);

 private:
  std::int64_t sequences_;
  std::int64_t capacity_;
  std::int64_t length_ = 0;
  Buffer memory_;
  std::vector<View> keys_;    // a layer: (B, capacity, P)
  std::vector<View> values_;  // a layer: (B, capacity, P)
};

}  // namespace lockstep
