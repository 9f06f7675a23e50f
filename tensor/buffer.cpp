#include "tensor/buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t round_up(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Buffer::Buffer(std::int64_t bytes, const char* what) : bytes_(bytes) {
  LOCKSTEP_CHECK(bytes >= 0, what, ": ", bytes, " bytes");
  if (bytes == 0) return;
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    fail(ErrorKind::kIo, what, ": cannot allocate ", human_bytes(static_cast<std::uint64_t>(bytes)),
         "; use a smaller model, microbatch or sequence length, or rematerialisation");
  }
  madvise(memory, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  data_ = memory;
}

Buffer::Buffer(std::int64_t bytes, const char* what, const std::string& directory) : bytes_(bytes) {
  LOCKSTEP_CHECK(bytes > 0, what, ": ", bytes, " bytes");
  std::string path = directory + "/offload-XXXXXX";
  const int fd = mkstemp(path.data());
  void* memory = MAP_FAILED;
  int error = errno;
  if (fd >= 0) {
    unlink(path.c_str());
    // Blocks are reserved now: a disk that fills up later would be a SIGBUS.
    error = posix_fallocate(fd, 0, bytes);
    if (error == 0) {
      memory =
          mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (memory == MAP_FAILED) error = errno;
    }
    close(fd);
  }
  if (memory == MAP_FAILED) {
    fail(ErrorKind::kIo, what, ": cannot keep ", human_bytes(static_cast<std::uint64_t>(bytes)),
         " in ", printable(directory), ": ", std::strerror(error));
  }
  data_ = memory;
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Arena::Arena(Buffer& memory) : memory_(&memory) {}

View Arena::take(DType dtype, std::initializer_list<std::int64_t> shape) {
  // A measuring arena's views have an address that is never read, so that they are not "absent".
  void* at = reinterpret_cast<void*>(kAlignment);
  const View measured(at, dtype, shape);
  const std::int64_t begin = used_;
  used_ = round_up(begin + measured.bytes(), kAlignment);
  peak_ = std::max(peak_, used_);
  if (memory_ == nullptr) return measured;
  LOCKSTEP_CHECK(used_ <= round_up(memory_->bytes(), kAlignment), "arena of ", memory_->bytes(),
                 " bytes is too small for ", measured.describe(), " at ", begin);
  return {static_cast<char*>(memory_->data()) + begin, dtype, shape};
}

}  // namespace lockstep
