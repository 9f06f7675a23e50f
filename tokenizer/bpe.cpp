#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "base/error.h"

namespace lockstep {
namespace {

// Up to here a scan over all pairs a merge is faster than the heap.
constexpr std::size_t kShortPiece = 64;

}  // namespace

BytePairEncoder::BytePairEncoder(const Options& options, std::span<const BpeMerge> merges)
    : options_(options) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(merges.size() * 2, 2));
  shift_ = 64U - static_cast<unsigned>(std::countr_zero(size));
  slots_.resize(size);
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::uint64_t pair = pair_of(merges[rank].left, merges[rank].right);
    std::size_t at = first_slot(pair);
    while (slots_[at].pair != pair && slots_[at].pair != ~std::uint64_t{0}) {
      at = (at + 1) & (size - 1);
    }
    slots_[at] = {pair, static_cast<std::uint32_t>(rank), merges[rank].result};
  }
}

void BytePairEncoder::merge(std::string_view piece, Scratch& scratch,
                            std::vector<std::uint32_t>& out) const {
  if (piece.size() >= kNoToken) {
    fail(ErrorKind::kInput, "a piece of text of ", piece.size(),
         " bytes without a place to split; at most 4 GiB can be encoded");
  }
  scratch.tokens.clear();
  start(piece, scratch.tokens);
  if (scratch.tokens.size() <= kShortPiece) {
    merge_short(scratch);
  } else {
    merge_long(scratch);
  }
  out.insert(out.end(), scratch.tokens.begin(), scratch.tokens.end());
}

void BytePairEncoder::start(std::string_view piece, std::vector<std::uint32_t>& tokens) const {
  bool after_unknown = false;
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    const std::uint32_t token = options_.byte_tokens[byte];
    if (token != kNoToken) {
      tokens.push_back(token);
      after_unknown = false;
      continue;
    }
    if (options_.unknown == kNoToken) {
      fail(ErrorKind::kInput, "byte ", static_cast<unsigned>(byte),
           " of the text has no token in this tokenizer's vocabulary, which has no unk_token "
           "either");
    }
    if (!after_unknown || !options_.fuse_unknown) tokens.push_back(options_.unknown);
    after_unknown = true;
  }
}

void BytePairEncoder::merge_short(Scratch& scratch) const {
  std::array<std::uint32_t, kShortPiece> ranks;    // of token i with its right neighbour
  std::array<std::uint32_t, kShortPiece> results;  // filled up to the last but one token
  std::vector<std::uint32_t>& tokens = scratch.tokens;
  if (tokens.size() < 2) return;
  std::size_t pairs = tokens.size() - 1;
  const auto look_up = [&](std::size_t i) {
    const Match match = find(tokens[i], tokens[i + 1]);
    ranks[i] = match.rank;
    results[i] = match.result;
  };
  for (std::size_t i = 0; i < pairs; ++i) look_up(i);
  while (pairs > 0) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < pairs; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == kNoToken) break;
    tokens[best] = results[best];
    std::copy(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              tokens.begin() + static_cast<std::ptrdiff_t>(pairs) + 1,
              tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    for (std::size_t i = best + 1; i < pairs; ++i) {
      ranks[i - 1] = ranks[i];
      results[i - 1] = results[i];
    }
    --pairs;
    if (best > 0) look_up(best - 1);
    if (best < pairs) look_up(best);
  }
  tokens.resize(pairs + 1);
}

void BytePairEncoder::merge_long(Scratch& scratch) const {
  auto& [tokens, ranks, results, next, previous, heap] = scratch;
  const auto count = static_cast<std::uint32_t>(tokens.size());
  ranks.assign(count, kNoToken);
  results.assign(count, kNoToken);
  next.resize(count);
  previous.resize(count);
  std::iota(next.begin(), next.end(), 1U);
  for (std::uint32_t i = 0; i < count; ++i) previous[i] = i - 1;  // of the first: kNoToken
  heap.clear();
  // A heap entry is (rank, position); it is stale when the pair there has another rank by now.
  const auto look_up = [&](std::uint32_t i) {
    const Match match =
        next[i] < count ? find(tokens[i], tokens[next[i]]) : Match{kNoToken, kNoToken};
    ranks[i] = match.rank;
    results[i] = match.result;
    return match.rank != kNoToken;
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    if (look_up(i)) heap.push_back(pair_of(ranks[i], i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto push = [&](std::uint32_t i) {
    if (!look_up(i)) return;
    heap.push_back(pair_of(ranks[i], i));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto rank = static_cast<std::uint32_t>(heap.back() >> 32U);
    const auto at = static_cast<std::uint32_t>(heap.back());
    heap.pop_back();
    if (ranks[at] != rank) continue;
    const std::uint32_t gone = next[at];
    tokens[at] = results[at];
    tokens[gone] = kNoToken;
    ranks[gone] = kNoToken;
    next[at] = next[gone];
    if (next[at] < count) previous[next[at]] = at;
    if (previous[at] != kNoToken) push(previous[at]);
    push(at);
  }
  std::erase(tokens, kNoToken);
}

PieceTable::PieceTable(std::size_t capacity)
    : slots_(std::bit_ceil(std::max<std::size_t>(capacity * 2, 2))) {}

PieceKey PieceTable::key_of(std::string_view piece, std::uint64_t hash) {
  return piece.size() <= PieceKey::kMaxBytes ? PieceKey::of(piece) : PieceKey{hash, 0};
}

bool PieceTable::holds(const Slot& slot, std::string_view piece, const PieceKey& key) const {
  if (slot.bytes != piece.size()) return false;
  if (piece.size() <= PieceKey::kMaxBytes) return slot.key == key;
  return slot.key.low == key.low &&
         std::string_view(text_).substr(static_cast<std::size_t>(slot.key.high), slot.bytes) ==
             piece;
}

void PieceTable::add(std::string_view bytes, std::uint32_t id) {
  LOCKSTEP_CHECK(!bytes.empty() && bytes.size() < kNoToken, "piece of ", bytes.size(), " bytes");
  const std::uint64_t hash = hash_piece(bytes);
  std::size_t at = hash & (slots_.size() - 1);
  while (slots_[at].bytes != 0) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = {key_of(bytes, hash), id, static_cast<std::uint32_t>(bytes.size())};
  if (bytes.size() > PieceKey::kMaxBytes) {
    slots_[at].key.high = text_.size();
    text_ += bytes;
  }
}

std::uint32_t PieceTable::find(std::string_view piece, std::uint64_t hash) const {
  const PieceKey key = key_of(piece, hash);
  for (std::size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].bytes == 0) return kNoToken;
    if (holds(slots_[at], piece, key)) return slots_[at].id;
  }
}

}  // namespace lockstep
