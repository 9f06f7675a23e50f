#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "io/file.h"

namespace lockstep {

// The ids that a token file may hold. `size` is the tokenizer's vocabulary, `rows` the model's
// embedding rows (>= size); ids from size to rows - 1 are padding and never data.
struct Vocabulary {
  std::uint32_t size = 0;
  std::uint32_t rows = 0;
};

// How wide a token is in a headerless file. A real NumPy header overrules it.
enum class TokenWidth : std::uint8_t { k16 = 2, k32 = 4 };
[[nodiscard]] const char* name_of(TokenWidth width);                    // "uint16", "uint32"
[[nodiscard]] TokenWidth token_width_of_name(const std::string& name);  // kConfig

// Token ids in a file: headerless little-endian uint16 or uint32 (whatever the name says), or the
// same behind a real NumPy header. Immutable, thread-safe.
class TokenFile {
 public:
  // kInput when missing; kData, naming file and size, when it is empty, is no whole number of
  // tokens, or (with `wanted_tokens`) does not hold as many tokens as were recorded.
  TokenFile(FileSystem& fs, const std::string& path, TokenWidth width,
            std::optional<std::uint64_t> wanted_tokens = std::nullopt);

  [[nodiscard]] const std::string& path() const { return file_->name(); }
  [[nodiscard]] std::uint64_t tokens() const { return tokens_; }
  [[nodiscard]] TokenWidth width() const { return width_; }

  // Fills `out` with tokens [first, first + out.size()). kBug past the end; kData when the file
  // shrank since, or when an id is not of the vocabulary (file, byte offset and id are named).
  void read(std::uint64_t first, std::span<std::uint32_t> out, const Vocabulary& vocabulary) const;

 private:
  void widen(std::span<std::uint32_t> out) const;
  void check_ids(std::uint64_t first, std::span<const std::uint32_t> ids,
                 const Vocabulary& vocabulary) const;

  std::unique_ptr<InputFile> file_;
  TokenWidth width_;
  std::uint64_t payload_offset_ = 0;
  std::uint64_t tokens_ = 0;
};

}  // namespace lockstep
