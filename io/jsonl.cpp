#include "io/jsonl.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;

// Where the last complete line ends.
std::uint64_t complete_length(const InputFile& file) {
  std::array<std::byte, kChunk> chunk;
  for (std::uint64_t end = file.size(); end > 0;) {
    const auto begin = end - std::min<std::uint64_t>(end, kChunk);
    const auto part = std::span(chunk).first(end - begin);
    file.read_at(begin, part);
    const auto found = std::find(part.rbegin(), part.rend(), std::byte{'\n'});
    if (found != part.rend()) return end - static_cast<std::uint64_t>(found - part.rbegin());
    end = begin;
  }
  return 0;
}

}  // namespace

JsonlWriter::JsonlWriter(FileSystem& fs, const std::string& path) : fs_(fs), path_(path) {
  if (fs.exists(path)) {
    const auto file = fs.open_input(path);
    complete_bytes_ = complete_length(*file);
    if (complete_bytes_ != file->size()) fs.truncate(path, complete_bytes_);
  }
  file_ = fs.open_output(path, OpenMode::kAppend);
}

void JsonlWriter::append_line(std::string_view json) {
  LOCKSTEP_CHECK(json.find('\n') == std::string_view::npos, path_, ": a line holds a newline");
  if (torn_) {
    fs_.truncate(path_, complete_bytes_);
    torn_ = false;
  }
  line_.assign(json);
  line_ += '\n';
  torn_ = true;
  file_->append(line_);
  torn_ = false;
  complete_bytes_ += line_.size();
}

JsonlTail read_jsonl(FileSystem& fs, const std::string& path,
                     const std::function<void(const JsonlLine&)>& take,
                     std::size_t max_line_bytes) {
  const auto file = fs.open_input(path);
  JsonlTail tail;
  std::string rest;  // of a line that began in an earlier chunk
  std::string chunk(kChunk, '\0');
  for (std::uint64_t offset = 0; offset < file->size();) {
    chunk.resize(std::min<std::uint64_t>(kChunk, file->size() - offset));
    file->read_at(offset, std::as_writable_bytes(std::span(chunk)));
    offset += chunk.size();
    for (std::string_view text = chunk; !text.empty();) {
      const auto end = text.find('\n');
      if (rest.size() + std::min(end, text.size()) > max_line_bytes) {
        fail(ErrorKind::kData, printable(path), " line ", tail.lines + 1, " (at byte ",
             tail.complete_bytes, ") is longer than ", max_line_bytes, " bytes");
      }
      rest += text.substr(0, end);
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
      ++tail.lines;
      if (!rest.empty()) {
        take({.text = rest, .number = tail.lines, .offset = tail.complete_bytes});
      }
      tail.complete_bytes += rest.size() + 1;
      rest.clear();
    }
  }
  tail.torn_bytes = rest.size();
  return tail;
}

}  // namespace lockstep
