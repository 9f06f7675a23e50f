#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "data/index.h"
#include "data/scratch_directory.h"

namespace lockstep {

// For tests: token files a.npy, b.npy, ... of the given numbers of tokens, whose ids count on from
// file to file (modulo 1000), with labels "even" and "odd" in turn.
class SmallMix {
 public:
  explicit SmallMix(const std::vector<std::size_t>& sizes) {
    std::uint32_t id = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::vector<std::uint32_t> ids(sizes[i]);
      for (auto& value : ids) value = id++ % 1000;
      const std::string name(1, static_cast<char>('a' + i));
      directory_.write_values<std::uint32_t>(name + ".npy", ids);
      mix_.push_back({i % 2 == 0 ? "even" : "odd", name + ".npy"});
    }
  }
  [[nodiscard]] DataIndex index(std::uint64_t length, ContentDigest digest = ContentDigest::kNo) {
    return DataIndex::build(FileSystem::real(), spec(length), mix_, pool_, digest);
  }
  [[nodiscard]] IndexSpec spec(std::uint64_t length) const {
    return {length, TokenWidth::k32, "tok", directory_.path()};
  }

  ScratchDirectory directory_;
  std::vector<MixEntry> mix_;
  ThreadPool pool_{1};
};

inline constexpr Vocabulary kSmallVocabulary = {1000, 1024};

}  // namespace lockstep
