#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/token_file.h"
#include "io/atomic_file.h"
#include "io/compressed.h"

namespace lockstep {

// Writes a token file (headerless, little-endian) and the sidecar that lists its documents. Neither
// appears before finish(). Not thread-safe. `fs` must outlive it.
class TokenWriter {
 public:
  TokenWriter(FileSystem& fs, const std::string& path, TokenWidth width);

  // Appends a document, its end-of-text token included; at least one token. kConfig for an id that
  // the width cannot hold.
  void add_document(std::span<const std::uint32_t> ids);
  [[nodiscard]] std::uint64_t tokens() const { return tokens_; }
  [[nodiscard]] std::uint64_t documents() const { return documents_; }
  // The sidecar first, so that a token file never stands without its own.
  void finish();

 private:
  void flush();

  AtomicFile file_;
  CompressedWriter sidecar_;
  TokenWidth width_;
  std::vector<std::byte> pending_;
  std::uint64_t tokens_ = 0;
  std::uint64_t documents_ = 0;
};

}  // namespace lockstep
