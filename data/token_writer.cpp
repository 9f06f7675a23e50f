#include "data/token_writer.h"

#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "data/document_spans.h"

namespace lockstep {

namespace {

constexpr std::size_t kFlushBytes = std::size_t{4} << 20U;

}  // namespace

TokenWriter::TokenWriter(FileSystem& fs, const std::string& path, TokenWidth width)
    : file_(fs, path), sidecar_(fs, sidecar_path(path), Compression::kGzip), width_(width) {}

void TokenWriter::add_document(std::span<const std::uint32_t> ids) {
  LOCKSTEP_CHECK(!ids.empty(), file_.path());
  if (width_ == TokenWidth::k32) {
    const auto bytes = std::as_bytes(ids);
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  } else {
    for (const std::uint32_t id : ids) {
      if (id > 0xffffU) {
        fail(ErrorKind::kConfig, printable(file_.path()), ": token id ", id,
             " does not fit uint16; write uint32");
      }
      pending_.push_back(static_cast<std::byte>(id & 0xffU));
      pending_.push_back(static_cast<std::byte>(id >> 8U));
    }
  }
  sidecar_.append(concat(tokens_, ',', tokens_ + ids.size(), '\n'));
  tokens_ += ids.size();
  ++documents_;
  if (pending_.size() >= kFlushBytes) flush();
}

void TokenWriter::flush() {
  file_.append(pending_);
  pending_.clear();
}

void TokenWriter::finish() {
  flush();
  sidecar_.commit();
  file_.commit();
}

}  // namespace lockstep
