#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/compressed.h"
#include "io/file.h"

namespace lockstep {

// What becomes of text that is not well-formed UTF-8. A tokenizer never sees it.
enum class InvalidUtf8 : std::uint8_t {
  kRefuse,   // kInput naming file and line
  kReplace,  // each maximal ill-formed part becomes U+FFFD (repair_utf8)
};

struct CorpusRules {
  std::string text_field = "text";  // of a .jsonl line
  // A line of a .txt file that equals this ends a document and belongs to none; empty: one document
  // a file.
  std::string separator{};
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kRefuse;
};

// A document as it was read, not yet decoded: that is done on many threads.
struct RawDocument {
  std::string bytes;       // a JSON line, or the text
  std::uint64_t line = 0;  // its first line in the file, from 1
};

// Documents of one .txt or .jsonl file (plain, .gz or .zst; by name, and the compression by
// content) in order. Blank lines of .jsonl are skipped. Not thread-safe.
class CorpusReader {
 public:
  // kInput for another name than those.
  CorpusReader(FileSystem& fs, const std::string& path, const CorpusRules& rules);

  // False at the end.
  [[nodiscard]] bool next(RawDocument& document);
  // The document's text, valid UTF-8. kInput naming file and line when the JSON is malformed, the
  // field is missing or no text, or the UTF-8 is refused. Thread-safe beside next().
  [[nodiscard]] std::string text_of(const RawDocument& document) const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t position() const { return lines_.source().position(); }

 private:
  bool next_json_line(RawDocument& document);
  bool next_text(RawDocument& document);

  std::string path_;
  CorpusRules rules_;
  bool json_;
  LineReader lines_;
  bool ended_ = false;
};

// True for names that CorpusReader takes.
[[nodiscard]] bool is_corpus_name(std::string_view path);

// `path` itself, or, of a directory, all corpus files in it and below, sorted by path bytes.
// Symbolic links to directories are not followed. kInput when there is none.
[[nodiscard]] std::vector<std::string> corpus_files(FileSystem& fs, const std::string& path);

// Whether a document is held out of training: a function of its text, the fraction and the seed
// only, so that equal documents fall on the same side whatever file they are in. `fraction` in
// [0, 1] is the share of distinct documents held out, on average.
[[nodiscard]] bool is_held_out(std::string_view text, double fraction, std::uint64_t seed);

}  // namespace lockstep
