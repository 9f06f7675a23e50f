#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/hash.h"

namespace lockstep {

// A piece of at most 16 bytes as two words. Together with the size they determine the bytes.
struct PieceKey {
  static constexpr std::size_t kMaxBytes = 16;

  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const PieceKey&, const PieceKey&) = default;

  // 1 <= piece.size() <= kMaxBytes. Reads overlap instead of branching on every size.
  [[nodiscard]] static PieceKey of(std::string_view piece) {
    const char* bytes = piece.data();
    const std::size_t size = piece.size();
    if (size >= 8) return {load<std::uint64_t>(bytes), load<std::uint64_t>(bytes + size - 8)};
    if (size >= 4) return {load<std::uint32_t>(bytes), load<std::uint32_t>(bytes + size - 4)};
    return {static_cast<std::uint64_t>(load<std::uint8_t>(bytes)) |
                static_cast<std::uint64_t>(load<std::uint8_t>(bytes + size / 2)) << 8U |
                static_cast<std::uint64_t>(load<std::uint8_t>(bytes + size - 1)) << 16U,
            0};
  }

  [[nodiscard]] std::uint64_t hash(std::size_t size) const {
    std::uint64_t mixed = (low ^ (size * 0x9e3779b97f4a7c15U)) * 0xbf58476d1ce4e5b9U;
    mixed = (std::rotl(mixed, 31) ^ high) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 32U);
  }

 private:
  template <class T>
  [[nodiscard]] static T load(const char* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
};

// For pieces of any size.
[[nodiscard]] inline std::uint64_t hash_piece(std::string_view piece) {
  if (!piece.empty() && piece.size() <= PieceKey::kMaxBytes) {
    return PieceKey::of(piece).hash(piece.size());
  }
  return hash64(piece);
}

}  // namespace lockstep
