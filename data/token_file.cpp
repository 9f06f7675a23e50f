#include "data/token_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "io/npy.h"

namespace lockstep {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

const char* name_of(TokenWidth width) { return width == TokenWidth::k16 ? "uint16" : "uint32"; }

TokenWidth token_width_of_name(const std::string& name) {
  if (name == "uint16") return TokenWidth::k16;
  if (name == "uint32") return TokenWidth::k32;
  fail(ErrorKind::kConfig, "token files hold uint16 or uint32, not '", printable(name), "'");
}

TokenFile::TokenFile(FileSystem& fs, const std::string& path, TokenWidth width,
                     std::optional<std::uint64_t> wanted_tokens)
    : file_(fs.open_input(path)), width_(width) {
  const std::uint64_t size = file_->size();
  if (size == 0) {
    fail(ErrorKind::kData, printable(path), ": the token file is empty (0 bytes)");
  }
  if (const auto header = parse_npy_header(*file_)) {
    width_ = header->element_bytes == 2 ? TokenWidth::k16 : TokenWidth::k32;
    payload_offset_ = header->payload_offset;
    tokens_ = header->elements;
  } else {
    const auto bytes = static_cast<std::uint64_t>(width_);
    if (size % bytes != 0) {
      fail(ErrorKind::kData, printable(path), ": ", size, " bytes are no whole number of ",
           name_of(width_), " tokens (", size % bytes, " left over): truncated, or another type");
    }
    tokens_ = size / bytes;
  }
  if (wanted_tokens && tokens_ != *wanted_tokens) {
    fail(ErrorKind::kData, printable(path), ": ", tokens_, " tokens (", size, " bytes) where ",
         *wanted_tokens, " were recorded: the file was ",
         tokens_ < *wanted_tokens ? "truncated" : "extended",
         " since; restore it or build the index again");
  }
}

void TokenFile::read(std::uint64_t first, std::span<std::uint32_t> out,
                     const Vocabulary& vocabulary) const {
  LOCKSTEP_CHECK(out.size() <= tokens_ && first <= tokens_ - out.size(), path(), ": tokens ", first,
                 "+", out.size(), " of ", tokens_);
  const std::uint64_t offset = payload_offset_ + first * static_cast<std::uint64_t>(width_);
  const auto bytes = std::as_writable_bytes(out);
  // Narrow tokens arrive in the front half of the room and spread out from the back.
  file_->read_at(offset, bytes.first(out.size() * static_cast<std::size_t>(width_)));
  if (width_ == TokenWidth::k16) widen(out);
  check_ids(first, out, vocabulary);
}

void TokenFile::widen(std::span<std::uint32_t> out) const {
  const auto* narrow = reinterpret_cast<const char*>(out.data());
  for (std::size_t i = out.size(); i-- > 0;) {
    std::uint16_t id = 0;
    std::memcpy(&id, narrow + 2 * i, 2);
    out[i] = id;
  }
}

void TokenFile::check_ids(std::uint64_t first, std::span<const std::uint32_t> ids,
                          const Vocabulary& vocabulary) const {
  std::uint32_t largest = 0;
  for (const std::uint32_t id : ids) largest = std::max(largest, id);
  if (ids.empty() || largest < vocabulary.size) return;
  const auto bad =
      std::find_if(ids.begin(), ids.end(), [&](std::uint32_t id) { return id >= vocabulary.size; });
  const std::uint64_t index = first + static_cast<std::uint64_t>(bad - ids.begin());
  fail(ErrorKind::kData, printable(path()), ": token ", index, " (byte ",
       payload_offset_ + index * static_cast<std::uint64_t>(width_), ") is id ", *bad, ", ",
       *bad < vocabulary.rows ? "in the padding rows" : "outside", " of the vocabulary of ",
       vocabulary.size, "; the file is damaged, of another tokenizer, or of another type than ",
       name_of(width_));
}

}  // namespace lockstep
