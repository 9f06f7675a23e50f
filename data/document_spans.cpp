#include "data/document_spans.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "io/compressed.h"

namespace lockstep {

namespace {

constexpr std::size_t kScanPiece = std::size_t{1} << 18U;
constexpr std::size_t kMaxRowBytes = std::size_t{1} << 20U;

// The number at the front of `text`, which loses it; false when there is none.
bool take_number(std::string_view& text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool parse_row(std::string_view row, DocumentSpan& span) {
  if (!take_number(row, span.begin) || row.empty() || row.front() != ',') return false;
  row.remove_prefix(1);
  return take_number(row, span.end) && (row.empty() || row.front() == ',' || row.front() == '\r');
}

std::vector<DocumentSpan> read_sidecar(FileSystem& fs, const std::string& path,
                                       const TokenFile& file) {
  LineReader lines(open_byte_source(fs, path), kMaxRowBytes);
  std::vector<DocumentSpan> spans;
  std::string line;
  std::uint64_t previous_end = 0;
  while (lines.next(line)) {
    const auto where = [&] { return concat(printable(path), " row ", lines.line_number(), ": "); };
    DocumentSpan span;
    if (!parse_row(line, span)) {
      fail(ErrorKind::kData, where(), "'", printable(line), "' is not start,end");
    }
    if (span.begin < previous_end || span.end <= span.begin || span.end > file.tokens()) {
      fail(ErrorKind::kData, where(), "document ", span.begin, "..", span.end,
           " where the one before ends at ", previous_end, " and ", printable(file.path()), " has ",
           file.tokens(), " tokens");
    }
    previous_end = span.end;
    spans.push_back(span);
  }
  return spans;
}

std::vector<DocumentSpan> scan(const TokenFile& file, std::uint32_t end_of_text,
                               const Vocabulary& vocabulary) {
  std::vector<DocumentSpan> spans;
  std::vector<std::uint32_t> piece(std::min<std::uint64_t>(kScanPiece, file.tokens()));
  std::uint64_t begin = 0;
  for (std::uint64_t first = 0; first < file.tokens(); first += piece.size()) {
    const auto ids =
        std::span(piece).first(std::min<std::uint64_t>(piece.size(), file.tokens() - first));
    file.read(first, ids, vocabulary);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != end_of_text) continue;
      spans.push_back({begin, first + i + 1});
      begin = first + i + 1;
    }
  }
  return spans;
}

}  // namespace

std::string sidecar_path(const std::string& token_path) {
  constexpr std::string_view kSuffix = ".npy";
  const std::string stem = token_path.ends_with(kSuffix)
                               ? token_path.substr(0, token_path.size() - kSuffix.size())
                               : token_path;
  return stem + ".csv.gz";
}

std::vector<DocumentSpan> document_spans(FileSystem& fs, const TokenFile& file,
                                         std::uint32_t end_of_text, const Vocabulary& vocabulary) {
  const std::string sidecar = sidecar_path(file.path());
  return fs.exists(sidecar) ? read_sidecar(fs, sidecar, file) : scan(file, end_of_text, vocabulary);
}

}  // namespace lockstep
