#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/pattern.h"

namespace lockstep {

class ThreadPool;

// Hands out one document after another: fills `text` and returns true, or returns false at the end.
// Called by one thread at a time.
using DocumentSource = std::function<bool(std::string& text)>;

struct WordCount {
  std::string word;
  std::uint64_t count;
};

// How often each piece occurs that the pattern's matches, and the text between them, cut documents
// into. Sorted by bytes, so the result depends neither on the number of threads nor on timing.
// Memory: the distinct words, once a thread, and a batch of documents. `progress` is told the bytes
// counted so far, now and then, by the calling thread. Throws kInput with the document's number
// (from 0) for text that is not well-formed UTF-8.
[[nodiscard]] std::vector<WordCount> count_words(
    const DocumentSource& documents, const Pattern& pattern, ThreadPool& pool,
    const std::function<void(std::uint64_t)>& progress = {});

}  // namespace lockstep
