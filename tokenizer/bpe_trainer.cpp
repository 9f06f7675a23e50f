#include "tokenizer/bpe_trainer.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "base/error.h"

namespace lockstep {
namespace {

struct HashPair {
  std::size_t operator()(std::uint64_t pair) const {
    pair *= 0x9e3779b97f4a7c15U;
    return pair ^ (pair >> 32U);
  }
};

// The words as tokens, and of every pair of neighbours how often it occurs and where.
class PairIndex {
 public:
  PairIndex(std::span<const WordCount> words, const std::array<std::uint32_t, 256>& byte_ids) {
    for (const WordCount& word : words) {
      LOCKSTEP_CHECK(word.word.size() < kNoToken && begins_.size() < kNoToken, "too many words");
      begins_.push_back(tokens_.size());
      sizes_.push_back(static_cast<std::uint32_t>(word.word.size()));
      counts_.push_back(word.count);
      for (const char c : word.word) tokens_.push_back(byte_ids[static_cast<unsigned char>(c)]);
    }
    for (std::uint32_t word = 0; word < begins_.size(); ++word) {
      const std::uint32_t* tokens = tokens_.data() + begins_[word];
      for (std::uint32_t i = 1; i < sizes_[word]; ++i) gain(tokens[i - 1], tokens[i], word);
    }
    for (Pair& pair : pairs_) push(pair);
    gained_.clear();
  }

  struct Top {
    std::uint64_t count;
    std::uint32_t left;
    std::uint32_t right;
  };

  // The next pair to merge; count 0 when there is none left.
  [[nodiscard]] Top top() {
    while (!heap_.empty()) {
      const Entry entry = heap_.top();
      Pair& pair = pairs_[at_.at(entry.pair)];
      if (entry.count == pair.count && pair.count > 0) {
        return {entry.count, static_cast<std::uint32_t>(entry.pair >> 32U),
                static_cast<std::uint32_t>(entry.pair)};
      }
      heap_.pop();
      // Losses are not announced to the heap; gains are, so a newer entry stands for them.
      if (entry.count > pair.count) push(pair);
    }
    return {0, 0, 0};
  }

  // Takes the pair out of the queue, for good.
  void pass_over(const Top& top) { pairs_[at_.at(key(top.left, top.right))].count = 0; }

  void merge(const Top& top, std::uint32_t result) {
    Pair& pair = pairs_[at_.at(key(top.left, top.right))];
    const std::vector<std::uint32_t> words = std::move(pair.words);
    pair.words = {};
    for (const std::uint32_t word : words) merge_in(word, top.left, top.right, result);
    for (const std::uint32_t gained : gained_) {
      pairs_[gained].gained = false;
      push(pairs_[gained]);
    }
    gained_.clear();
  }

 private:
  struct Pair {
    std::uint64_t key = 0;
    std::uint64_t count = 0;
    std::vector<std::uint32_t> words;  // that held it at some time; repeats are possible
    bool gained = false;               // is in gained_
  };
  struct Entry {
    std::uint64_t count;
    std::uint64_t pair;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.count != b.count ? a.count < b.count : a.pair > b.pair;
    }
  };

  [[nodiscard]] static std::uint64_t key(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << 32U | right;
  }

  void push(const Pair& pair) {
    if (pair.count > 0) heap_.push({pair.count, pair.key});
  }

  void gain(std::uint32_t left, std::uint32_t right, std::uint32_t word) {
    const auto [found, is_new] =
        at_.try_emplace(key(left, right), static_cast<std::uint32_t>(pairs_.size()));
    if (is_new) pairs_.push_back({found->first, 0, {}, false});
    Pair& pair = pairs_[found->second];
    pair.count += counts_[word];
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
    if (!pair.gained) {
      pair.gained = true;
      gained_.push_back(found->second);
    }
  }

  void lose(std::uint32_t left, std::uint32_t right, std::uint32_t word) {
    Pair& pair = pairs_[at_.at(key(left, right))];
    // A pair that was passed over stands at 0 and stays there.
    pair.count -= std::min(pair.count, counts_[word]);
  }

  void merge_in(std::uint32_t word, std::uint32_t left, std::uint32_t right, std::uint32_t result) {
    std::uint32_t* tokens = tokens_.data() + begins_[word];
    const std::uint32_t size = sizes_[word];
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (tokens[i] != left || i + 1 == size || tokens[i + 1] != right) {
        tokens[kept++] = tokens[i];
        continue;
      }
      lose(left, right, word);
      if (kept > 0) {
        lose(tokens[kept - 1], left, word);
        gain(tokens[kept - 1], result, word);
      }
      if (i + 2 < size) {
        lose(right, tokens[i + 2], word);
        gain(result, tokens[i + 2], word);
      }
      tokens[kept++] = result;
      ++i;
    }
    sizes_[word] = kept;
  }

  std::vector<std::uint32_t> tokens_;  // of all words
  std::vector<std::size_t> begins_;
  std::vector<std::uint32_t> sizes_;
  std::vector<std::uint64_t> counts_;
  std::vector<Pair> pairs_;
  std::unordered_map<std::uint64_t, std::uint32_t, HashPair> at_;
  std::vector<std::uint32_t> gained_;
  std::priority_queue<Entry> heap_;
};

}  // namespace

std::vector<BpeMerge> learn_merges(std::span<const WordCount> words,
                                   const MergeTraining& training) {
  PairIndex index(words, training.byte_ids);
  std::unordered_map<std::uint32_t, std::string> bytes;
  std::unordered_map<std::string, std::uint32_t> ids;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes[training.byte_ids[byte]] = std::string(1, static_cast<char>(byte));
    ids[bytes[training.byte_ids[byte]]] = training.byte_ids[byte];
  }
  for (const std::string& text : training.forbidden) ids[text] = kNoToken;
  std::unordered_map<std::uint64_t, bool> merged;
  std::vector<BpeMerge> merges;
  std::size_t made = 0;
  while (made < training.max_new_tokens) {
    const PairIndex::Top top = index.top();
    if (top.count < std::max<std::uint64_t>(training.min_frequency, 1)) break;
    const std::string text = bytes.at(top.left) + bytes.at(top.right);
    const auto next_id = training.first_id + static_cast<std::uint32_t>(made);
    const auto [entry, is_new] = ids.try_emplace(text, next_id);
    const std::uint32_t id = entry->second;
    if (id == kNoToken) {
      index.pass_over(top);
      continue;
    }
    if (is_new) {
      bytes.emplace(id, text);
      ++made;
      if (training.progress) training.progress(made);
    }
    // A token that two pairs spell can bring a merged pair back; it has its merge already.
    const std::uint64_t pair = static_cast<std::uint64_t>(top.left) << 32U | top.right;
    if (merged.emplace(pair, true).second) merges.push_back({top.left, top.right, id});
    index.merge(top, id);
  }
  return merges;
}

}  // namespace lockstep
