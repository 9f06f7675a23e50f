#include "tokenizer/bpe.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "tokenizer/piece_cache.h"

namespace lockstep {
namespace {

BytePairEncoder::Options all_bytes() {
  BytePairEncoder::Options options{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) options.byte_tokens[byte] = byte;
  return options;
}

// The definition, word for word.
std::vector<std::uint32_t> merge_by_definition(std::string_view piece,
                                               std::span<const BpeMerge> merges) {
  std::vector<std::uint32_t> tokens;
  for (const char c : piece) tokens.push_back(static_cast<unsigned char>(c));
  while (true) {
    std::size_t best_rank = merges.size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank].left == tokens[i] && merges[rank].right == tokens[i + 1]) {
          best_rank = rank;
          best = i;
        }
      }
    }
    if (best_rank == merges.size()) return tokens;
    tokens[best] = merges[best_rank].result;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(BytePairEncoder, EqualsTheDefinitionForShortAndLongPieces) {
  const CounterRng random(3, "bpe");
  std::uint64_t at = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<BpeMerge> merges;
    for (std::uint32_t i = 0; i < 30; ++i) {
      const auto pick = [&] {
        const auto token = static_cast<std::uint32_t>(random.u64(at++) % (4 + i));
        return token < 4 ? 'a' + token : 256 + token - 4;
      };
      merges.push_back({pick(), pick(), 256 + i});
    }
    // Each pair has one rank.
    for (std::size_t i = 0; i < merges.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (merges[j].left == merges[i].left && merges[j].right == merges[i].right) {
          merges[i].left = 'z';
        }
      }
    }
    const BytePairEncoder encoder(all_bytes(), merges);
    BytePairEncoder::Scratch scratch;
    for (const std::size_t size : {0, 1, 2, 3, 17, 63, 64, 65, 66, 200}) {
      std::string piece;
      while (piece.size() < size) piece += static_cast<char>('a' + random.u64(at++) % 4);
      std::vector<std::uint32_t> tokens = {42};
      encoder.merge(piece, scratch, tokens);
      EXPECT_EQ(tokens[0], 42U);
      tokens.erase(tokens.begin());
      ASSERT_EQ(tokens, merge_by_definition(piece, merges)) << piece;
    }
  }
}

TEST(BytePairEncoder, UsesTheUnknownTokenOrRefuses) {
  BytePairEncoder::Options options = all_bytes();
  options.byte_tokens['x'] = kNoToken;
  BytePairEncoder::Scratch scratch;
  std::vector<std::uint32_t> tokens;
  EXPECT_THROW(BytePairEncoder(options, {}).merge("axb", scratch, tokens), Error);
  options.unknown = 300;
  tokens.clear();
  BytePairEncoder(options, {}).merge("xxaxx", scratch, tokens);
  EXPECT_EQ(tokens, (std::vector<std::uint32_t>{300, 300, 'a', 300, 300}));
  options.fuse_unknown = true;
  tokens.clear();
  BytePairEncoder(options, {}).merge("xxaxx", scratch, tokens);
  EXPECT_EQ(tokens, (std::vector<std::uint32_t>{300, 'a', 300}));
}

TEST(PieceTable, FindsPiecesOfEverySize) {
  PieceTable table(40);
  std::string piece;
  for (std::uint32_t size = 1; size <= 40; ++size) {
    piece += static_cast<char>('a' + size % 26);
    table.add(piece, size);
  }
  for (std::size_t size = 1; size <= 40; ++size) {
    const std::string part = piece.substr(0, size);
    EXPECT_EQ(table.find(part, hash_piece(part)), size);
    std::string other = part;
    other.back() = '?';
    EXPECT_EQ(table.find(other, hash_piece(other)), kNoToken);
  }
}

TEST(PieceCache, ReturnsOnlyWhatWasPutForThatPiece) {
  PieceCache cache;
  const auto put = [&](const std::string& piece, std::size_t count) {
    const std::vector<std::uint32_t> ids(count, static_cast<std::uint32_t>(piece.size()));
    cache.put(piece, hash_piece(piece), ids);
  };
  const auto held = [&](const std::string& piece) {
    return cache.find(piece, hash_piece(piece)).size();
  };
  for (std::size_t size = 1; size < 60; ++size) {
    const std::string piece(size, 'x');
    EXPECT_EQ(held(piece), 0U);
    put(piece, std::min<std::size_t>(size, 17));
    EXPECT_EQ(held(piece), size <= PieceCache::kMaxIds ? size : 0) << size;
    EXPECT_EQ(held(std::string(size, 'y')), 0U);
  }
  put("few ids in a long piece", 2);
  EXPECT_EQ(held("few ids in a long piece"), 2U);
}

}  // namespace
}  // namespace lockstep
