#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/piece_key.h"

namespace lockstep {

// What recent pieces were encoded to: direct-mapped, fixed size (about 768 KiB), the newest wins.
// Most of a text is few words, so this small table answers nearly all look-ups from the nearest
// cache levels. Belongs to one thread at a time.
class PieceCache {
 public:
  static constexpr std::size_t kMaxPieceBytes = 54;
  static constexpr std::size_t kMaxIds = 16;

  PieceCache() : small_(kSmallSlots), large_(kLargeSlots) {}

  // The ids of a piece of 1 to kMaxPieceBytes bytes with its hash_piece(); empty when not held.
  // Valid until the next put.
  [[nodiscard]] std::span<const std::uint32_t> find(std::string_view piece,
                                                    std::uint64_t hash) const {
    if (piece.size() <= PieceKey::kMaxBytes) {
      const Small& slot = small_[hash % kSmallSlots];
      if (slot.bytes == piece.size() && slot.key == PieceKey::of(piece)) {
        return {slot.ids.data(), slot.count};
      }
    }
    if (piece.size() > PieceKey::kMaxBytes || small_overflowed_) {
      const Large& slot = large_[hash % kLargeSlots];
      if (slot.hash == hash && std::string_view(slot.text.data(), slot.bytes) == piece) {
        return {slot.ids.data(), slot.count};
      }
    }
    return {};
  }

  // Does nothing for a piece or a count of ids that is too large, or none.
  void put(std::string_view piece, std::uint64_t hash, std::span<const std::uint32_t> ids) {
    if (piece.empty() || piece.size() > kMaxPieceBytes || ids.empty() || ids.size() > kMaxIds)
      return;
    if (piece.size() <= PieceKey::kMaxBytes && ids.size() <= kSmallIds) {
      Small& slot = small_[hash % kSmallSlots];
      slot.key = PieceKey::of(piece);
      std::copy(ids.begin(), ids.end(), slot.ids.begin());
      slot.bytes = static_cast<std::uint8_t>(piece.size());
      slot.count = static_cast<std::uint8_t>(ids.size());
      return;
    }
    small_overflowed_ = small_overflowed_ || piece.size() <= PieceKey::kMaxBytes;
    Large& slot = large_[hash % kLargeSlots];
    slot.hash = hash;
    std::copy(piece.begin(), piece.end(), slot.text.begin());
    std::copy(ids.begin(), ids.end(), slot.ids.begin());
    slot.bytes = static_cast<std::uint8_t>(piece.size());
    slot.count = static_cast<std::uint8_t>(ids.size());
  }

 private:
  static constexpr std::size_t kSmallSlots = 1U << 14U;
  static constexpr std::size_t kLargeSlots = 1U << 11U;
  static constexpr std::size_t kSmallIds = 3;

  struct Small {
    PieceKey key;
    std::array<std::uint32_t, kSmallIds> ids{};
    std::uint8_t bytes = 0;  // 0: empty
    std::uint8_t count = 0;
  };
  struct Large {
    std::uint64_t hash = 0;
    std::array<std::uint32_t, kMaxIds> ids{};
    std::array<char, kMaxPieceBytes> text{};
    std::uint8_t bytes = 0;
    std::uint8_t count = 0;
  };
  static_assert(sizeof(Small) == 32 && sizeof(Large) == 128);

  std::vector<Small> small_;
  std::vector<Large> large_;
  bool small_overflowed_ = false;  // some short piece with many ids sits in large_
};

}  // namespace lockstep
