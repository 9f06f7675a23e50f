#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/token_file.h"

namespace lockstep {

// Tokens [begin, end) of a token file: one document, its end-of-text token included.
struct DocumentSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const DocumentSpan&, const DocumentSpan&) = default;
};

// "a/b.csv.gz" of "a/b.npy": where the documents of a token file are listed, if they are.
[[nodiscard]] std::string sidecar_path(const std::string& token_path);

// The documents of a token file in order: from the sidecar when there is one (gzip, rows
// "start,end" and perhaps more columns), else cut after each end-of-text token; tokens behind the
// last of those belong to no document (OLMo-core drops them too). kData, naming file and row, for a
// sidecar that is damaged, overlaps itself or leaves the file; else as TokenFile::read.
[[nodiscard]] std::vector<DocumentSpan> document_spans(FileSystem& fs, const TokenFile& file,
                                                       std::uint32_t end_of_text,
                                                       const Vocabulary& vocabulary);

}  // namespace lockstep
