#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "tensor/view.h"

namespace lockstep {

// Zeroed host memory, aligned to 64 bytes (2 MiB and huge pages when large). Move-only.
class Buffer {
 public:
  Buffer() = default;
  // Throws kIo when the memory cannot be had, naming the size and `what`.
  Buffer(std::int64_t bytes, const char* what);
  // In an unnamed file of `directory` (on a disk, not tmpfs), which the system reads and writes
  // back as it needs the memory for other things. Throws kIo as above.
  Buffer(std::int64_t bytes, const char* what, const std::string& directory);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// Hands out views of one Buffer, one after another, each aligned to 64 bytes. Measure first: an
// Arena without memory only adds up what the same calls would take (its views are not to be read),
// so that one layout function both sizes and binds. Not thread-safe.
class Arena {
 public:
  Arena() = default;               // measuring
  explicit Arena(Buffer& memory);  // binding; the buffer must outlive the views

  // Throws kBug when the buffer is too small.
  View take(DType dtype, std::initializer_list<std::int64_t> shape);

  [[nodiscard]] std::int64_t used() const { return used_; }
  // Everything taken after a mark may be taken again; the peak is kept.
  [[nodiscard]] std::int64_t mark() const { return used_; }
  void release(std::int64_t mark) { used_ = mark; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }

 private:
  Buffer* memory_ = nullptr;
  std::int64_t used_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace lockstep
