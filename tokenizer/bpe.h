#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/piece_key.h"

namespace lockstep {

inline constexpr std::uint32_t kNoToken = 0xffffffffU;

// One merge of a byte-pair encoding: `left` and `right` side by side become `result`.
struct BpeMerge {
  std::uint32_t left;
  std::uint32_t right;
  std::uint32_t result;
};

// Byte-pair merging (Sennrich et al. 2016, over bytes): of all pairs of neighbours the one with the
// lowest rank, and of those the leftmost, is merged until none is left. Short pieces by scanning,
// long ones with a heap, in O(n log n). Immutable once built, then thread-safe.
class BytePairEncoder {
 public:
  struct Options {
    std::array<std::uint32_t, 256> byte_tokens;  // kNoToken where the vocabulary lacks a byte
    std::uint32_t unknown = kNoToken;            // stands for a missing byte, if given
    bool fuse_unknown = false;                   // a run of missing bytes is one unknown
  };

  // merges[r] has rank r; the last one counts where a pair stands twice.
  BytePairEncoder(const Options& options, std::span<const BpeMerge> merges);

  // The working memory of merge(); keep one a thread.
  struct Scratch {
    std::vector<std::uint32_t> tokens;
    std::vector<std::uint32_t> ranks;
    std::vector<std::uint32_t> results;
    std::vector<std::uint32_t> next;
    std::vector<std::uint32_t> previous;
    std::vector<std::uint64_t> heap;
  };

  // Appends the tokens of a piece. Throws kInput for a byte without a token when there is no
  // unknown, and for a piece of 4 GiB or more.
  void merge(std::string_view piece, Scratch& scratch, std::vector<std::uint32_t>& out) const;

 private:
  struct Slot {
    std::uint64_t pair = ~std::uint64_t{0};
    std::uint32_t rank = 0;
    std::uint32_t result = 0;
  };
  struct Match {
    std::uint32_t rank;  // kNoToken: no merge
    std::uint32_t result;
  };

  [[nodiscard]] static std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << 32U | right;
  }
  [[nodiscard]] std::size_t first_slot(std::uint64_t pair) const {
    return static_cast<std::size_t>((pair * 0x9e3779b97f4a7c15U) >> shift_);
  }
  [[nodiscard]] Match find(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t pair = pair_of(left, right);
    for (std::size_t at = first_slot(pair);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].pair == pair) return {slots_[at].rank, slots_[at].result};
      if (slots_[at].pair == ~std::uint64_t{0}) return {kNoToken, kNoToken};
    }
  }
  void start(std::string_view piece, std::vector<std::uint32_t>& tokens) const;
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  Options options_;
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  unsigned shift_ = 0;
};

// Whole pieces that are one token: bytes to id. Immutable once filled, then thread-safe.
class PieceTable {
 public:
  explicit PieceTable(std::size_t capacity);
  // Bytes must not be empty nor be there already.
  void add(std::string_view bytes, std::uint32_t id);
  // `hash` is hash_piece(piece).
  [[nodiscard]] std::uint32_t find(std::string_view piece, std::uint64_t hash) const;

 private:
  struct Slot {
    PieceKey key;  // of long pieces: hash, and where the bytes are in text_
    std::uint32_t id = kNoToken;
    std::uint32_t bytes = 0;  // 0: empty
  };
  [[nodiscard]] bool holds(const Slot& slot, std::string_view piece, const PieceKey& key) const;
  [[nodiscard]] static PieceKey key_of(std::string_view piece, std::uint64_t hash);

  std::vector<Slot> slots_;
  std::string text_;
};

}  // namespace lockstep
