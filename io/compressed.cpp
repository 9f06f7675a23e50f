#include "io/compressed.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

Compression compression_of_name(std::string_view path) {
  if (path.ends_with(".gz")) return Compression::kGzip;
  if (path.ends_with(".zst")) return Compression::kZstd;
  return Compression::kNone;
}

LineReader::LineReader(std::unique_ptr<ByteSource> source, std::size_t max_line_bytes)
    : source_(std::move(source)),
      max_line_bytes_(max_line_bytes),
      buffer_(std::size_t{1} << 16, '\0') {}

bool LineReader::next(std::string& line) {
  line.clear();
  for (;;) {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = source_->read(std::as_writable_bytes(std::span(buffer_)));
      if (end_ == 0) {
        if (line.empty()) return false;
        break;
      }
    }
    const auto text = std::string_view(buffer_).substr(begin_, end_ - begin_);
    const auto length = std::min(text.find('\n'), text.size());
    if (length > max_line_bytes_ - line.size()) {
      fail(ErrorKind::kData, printable(source_->name()), " line ", line_number_ + 1,
           " is longer than ", max_line_bytes_, " bytes");
    }
    line += text.substr(0, length);
    begin_ += length;
    if (length < text.size()) {
      ++begin_;
      break;
    }
  }
  ++line_number_;
  return true;
}

std::string read_text(FileSystem& fs, const std::string& path, std::uint64_t max_bytes) {
  const auto source = open_byte_source(fs, path);
  std::string text;
  std::string chunk(std::size_t{1} << 16, '\0');
  while (const auto got = source->read(std::as_writable_bytes(std::span(chunk)))) {
    if (got > max_bytes - text.size()) {
      fail(ErrorKind::kInput, printable(path), " holds more than the limit of ", max_bytes,
           " bytes for a file of this kind");
    }
    text.append(chunk, 0, got);
  }
  return text;
}

}  // namespace lockstep
