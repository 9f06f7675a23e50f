#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

MappedFile::MappedFile(const std::string& path) : name_(path) {
  if (path.find('\0') != std::string::npos) {
    fail(ErrorKind::kInput, "path ", printable(path), " holds a NUL byte");
  }
  do {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) {
    const int reason = errno;
    const bool missing = reason == ENOENT || reason == ENOTDIR || reason == ENAMETOOLONG;
    fail(missing ? ErrorKind::kInput : ErrorKind::kIo, "cannot open ", printable(path), ": ",
         std::generic_category().message(reason));
  }
  try {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
      fail(ErrorKind::kInput, printable(path), " is not a regular file");
    }
    if (status.st_size == 0) {
      fail(ErrorKind::kInput, printable(path),
           " is empty (0 bytes); make it again, or take it out of the list that names it");
    }
    size_ = static_cast<std::size_t>(status.st_size);
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
    if (address == MAP_FAILED) {
      fail(ErrorKind::kIo, "cannot map ", printable(path), " (", size_,
           " bytes): ", std::generic_category().message(errno));
    }
    data_ = static_cast<const std::byte*>(address);
  } catch (...) {
    release();
    throw;
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    release();
    name_ = std::move(other.name_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() { release(); }

void MappedFile::release() noexcept {
  // munmap takes no pointer to const; nothing is written through it.
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (descriptor_ >= 0) ::close(descriptor_);
  data_ = nullptr;
  descriptor_ = -1;
}

void MappedFile::check_size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    fail(ErrorKind::kIo, "cannot examine ", printable(name_), ": ",
         std::generic_category().message(errno));
  }
  if (static_cast<std::size_t>(status.st_size) != size_) {
    fail(ErrorKind::kData, printable(name_), " has ", status.st_size, " bytes now, but ", size_,
         " when it was opened; it must not change while it is in use");
  }
}

}  // namespace lockstep
