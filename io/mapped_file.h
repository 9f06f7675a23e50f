#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

// A whole regular file mapped read-only, from a page boundary on. Move-only; reading from many
// threads is fine. Whoever shortens a mapped file makes its readers die of SIGBUS: files that are
// mapped are replaced by rename, never rewritten in place.
class MappedFile {
 public:
  // kInput when missing, not a regular file, or empty (an empty file is always a mistake here; the
  // text says so and names it).
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // kData when the file's size is not what it was when mapped.
  void check_size() const;

 private:
  void release() noexcept;

  std::string name_;
  int descriptor_ = -1;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace lockstep
