#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "data/corpus.h"
#include "data/token_file.h"

namespace lockstep {

// Turns the text of a document into ids, without end-of-text. Called from many threads at once,
// `thread` in [0, pool.threads()).
using EncodeText =
    std::function<void(std::string_view text, int thread, std::vector<std::uint32_t>& ids)>;

// Files whose documents get one label.
struct CorpusInput {
  std::string label;  // letters, digits, '-', '_', '.'
  std::vector<std::string> files;
};

struct TokenizeSpec {
  std::string output_directory;
  TokenWidth width = TokenWidth::k32;
  std::uint32_t end_of_text = 0;      // appended to every document
  std::string tokenizer_fingerprint;  // recorded
  CorpusRules rules;
  double heldout_fraction = 0;  // of the documents, by is_held_out
  std::uint64_t heldout_seed = 0;
  std::uint64_t max_file_tokens = std::uint64_t{1} << 30U;  // a new file is begun past this
};

struct TokenizedPart {
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;        // end-of-text included
  std::uint64_t text_bytes = 0;    // UTF-8
  std::vector<std::string> files;  // relative to the output directory
};

struct TokenizedLabel {
  std::string label;
  TokenizedPart train;
  TokenizedPart heldout;
  std::uint64_t empty_documents = 0;  // without any text: left out
};

struct TokenizeProgress {
  std::string file;              // being read
  std::uint64_t bytes_done = 0;  // of the input files as they are stored
  std::uint64_t bytes_total = 0;
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;
};

// Writes, under the output directory, for each label
//   LABEL/train-00000.npy, ...    token files, each with its .csv.gz (data/document_spans.h)
//   LABEL/heldout-00000.npy, ...  the same for the held-out documents
// then mix.txt and heldout.txt (data/mix.h) and, last, dataset.json: tokenizer, end-of-text, and
// the counts by label. All are atomic and the same bytes for any number of threads: documents stay
// in input order. Progress comes from the calling thread after each group of documents. kConfig for
// a label that is no plain name or given twice, an existing dataset.json (never mixed with another
// tokenizer's), or ids too wide; kInput from reading; kData when nothing was left.
[[nodiscard]] std::vector<TokenizedLabel> tokenize_corpus(
    FileSystem& fs, const TokenizeSpec& spec, const std::vector<CorpusInput>& inputs,
    const EncodeText& encode, ThreadPool& pool,
    const std::function<void(const TokenizeProgress&)>& progress);

}  // namespace lockstep
