#include "tokenizer/word_counts.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/thread_pool.h"
#include "tokenizer/piece_key.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/unicode.h"

namespace lockstep {
namespace {

// Enough work to share out, little memory.
constexpr std::size_t kBatchBytes = 8U << 20U;
constexpr std::size_t kBatchDocuments = 4096;

struct HashWord {
  using is_transparent = void;
  std::size_t operator()(std::string_view word) const { return hash_piece(word); }
};
using Counts = std::unordered_map<std::string, std::uint64_t, HashWord, std::equal_to<>>;

void count_document(std::string_view text, const Pattern& pattern, std::vector<Span>& spans,
                    Counts& counts) {
  spans.clear();
  pattern.find_all(text, spans);
  for (const Span& span : spans) {
    if (span.begin == span.end) continue;
    const std::string_view word = text.substr(span.begin, span.end - span.begin);
    const auto found = counts.find(word);
    if (found != counts.end()) {
      ++found->second;
    } else {
      counts.emplace(word, 1);
    }
  }
}

}  // namespace

std::vector<WordCount> count_words(const DocumentSource& documents, const Pattern& pattern,
                                   ThreadPool& pool,
                                   const std::function<void(std::uint64_t)>& progress) {
  const auto threads = static_cast<std::size_t>(pool.threads());
  std::vector<Counts> counts(threads);
  std::vector<std::vector<Span>> spans(threads);
  std::vector<std::string> batch;
  std::uint64_t documents_before = 0;
  std::uint64_t bytes_done = 0;
  for (bool more = true; more;) {
    batch.clear();
    std::size_t bytes = 0;
    while (bytes < kBatchBytes && batch.size() < kBatchDocuments) {
      std::string text;
      more = documents(text);
      if (!more) break;
      bytes += text.size();
      batch.push_back(std::move(text));
    }
    pool.parallel_for(static_cast<std::int64_t>(batch.size()), [&](std::int64_t index, int thread) {
      const std::string& text = batch[static_cast<std::size_t>(index)];
      if (const auto offset = find_invalid_utf8(text)) {
        fail(ErrorKind::kInput, "document ", documents_before + static_cast<std::uint64_t>(index),
             " to train the tokenizer on: not valid UTF-8 at byte ", *offset);
      }
      const auto own = static_cast<std::size_t>(thread);
      count_document(text, pattern, spans[own], counts[own]);
    });
    documents_before += batch.size();
    bytes_done += bytes;
    if (progress) progress(bytes_done);
  }
  for (std::size_t thread = 1; thread < threads; ++thread) {
    for (const auto& [word, count] : counts[thread]) counts[0][word] += count;
    counts[thread] = Counts();
  }
  std::vector<WordCount> words;
  words.reserve(counts[0].size());
  while (!counts[0].empty()) {
    auto node = counts[0].extract(counts[0].begin());
    words.push_back({std::move(node.key()), node.mapped()});
  }
  std::sort(words.begin(), words.end(),
            [](const WordCount& a, const WordCount& b) { return a.word < b.word; });
  return words;
}

}  // namespace lockstep
