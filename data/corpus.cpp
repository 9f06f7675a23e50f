#include "data/corpus.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "tokenizer/unicode.h"

namespace lockstep {

namespace {

enum class Format { kText, kJsonl, kNone };

Format format_of_name(std::string_view path) {
  if (compression_of_name(path) != Compression::kNone)
    path.remove_suffix(path.size() - path.rfind('.'));
  if (path.ends_with(".txt")) return Format::kText;
  if (path.ends_with(".jsonl")) return Format::kJsonl;
  return Format::kNone;
}

const std::string& checked_name(const std::string& path) {
  if (format_of_name(path) == Format::kNone) {
    fail(ErrorKind::kInput, printable(path),
         ": documents come from .txt or .jsonl files, plain, .gz or .zst");
  }
  return path;
}

void list_below(FileSystem& fs, const std::string& directory, std::vector<std::string>& out) {
  for (const std::string& name : fs.list(directory)) {
    const std::string path = join_path(directory, name);
    if (fs.kind(path, FollowSymlinks::kNo) == FileKind::kDirectory) {
      list_below(fs, path, out);
    } else if (is_corpus_name(name) && fs.kind(path, FollowSymlinks::kYes) == FileKind::kRegular) {
      out.push_back(path);
    }
  }
}

}  // namespace

CorpusReader::CorpusReader(FileSystem& fs, const std::string& path, const CorpusRules& rules)
    : path_(checked_name(path)),
      rules_(rules),
      json_(format_of_name(path) == Format::kJsonl),
      lines_(open_byte_source(fs, path)) {}

bool CorpusReader::next(RawDocument& document) {
  return json_ ? next_json_line(document) : next_text(document);
}

bool CorpusReader::next_json_line(RawDocument& document) {
  while (lines_.next(document.bytes)) {
    if (document.bytes.find_first_not_of(" \t\r") == std::string::npos) continue;
    document.line = lines_.line_number();
    return true;
  }
  return false;
}

bool CorpusReader::next_text(RawDocument& document) {
  if (ended_) return false;
  document.bytes.clear();
  document.line = lines_.line_number() + 1;
  std::string line;
  while (lines_.next(line)) {
    if (!rules_.separator.empty() && line == rules_.separator) return true;
    document.bytes += line;
    document.bytes += '\n';
  }
  ended_ = true;
  return !document.bytes.empty();
}

std::string CorpusReader::text_of(const RawDocument& document) const {
  const bool valid = is_valid_utf8(document.bytes);
  const auto where = [&] { return concat(printable(path_), " line ", document.line); };
  if (!valid && rules_.invalid_utf8 == InvalidUtf8::kRefuse) {
    fail(ErrorKind::kInput, where(), ": ", json_ ? "the line" : "the document that starts here",
         " is not valid UTF-8; repair it, or ask for replacement");
  }
  std::string text = valid ? document.bytes : repair_utf8(document.bytes);
  if (!json_) return text;
  const Json json = parse_json(text, where());
  if (!json.is_object() || !json.contains(rules_.text_field)) {
    fail(ErrorKind::kInput, where(), ": there is no field '", printable(rules_.text_field), "'");
  }
  const Json& value = json.at(rules_.text_field);
  if (!value.is_string()) {
    fail(ErrorKind::kInput, where(), ": field '", printable(rules_.text_field), "' is no text");
  }
  return value.get<std::string>();
}

bool is_corpus_name(std::string_view path) { return format_of_name(path) != Format::kNone; }

std::vector<std::string> corpus_files(FileSystem& fs, const std::string& path) {
  if (!fs.is_directory(path)) return {checked_name(path)};
  std::vector<std::string> files;
  list_below(fs, path, files);
  if (files.empty()) {
    fail(ErrorKind::kInput, printable(path), ": no .txt or .jsonl file in this directory or below");
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_held_out(std::string_view text, double fraction, std::uint64_t seed) {
  if (!(fraction >= 0 && fraction <= 1)) {
    fail(ErrorKind::kConfig, "the held-out fraction ", fraction, " is not in [0, 1]");
  }
  return static_cast<double>(hash64(text, seed) >> 11U) * 0x1p-53 < fraction;
}

}  // namespace lockstep
