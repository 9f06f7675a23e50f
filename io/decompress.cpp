#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "io/compressed.h"

namespace lockstep {
namespace {

constexpr std::size_t kInputChunk = std::size_t{1} << 16;
constexpr int kMaxZstdWindowLog = 27;  // 128 MiB

// The compressed file in chunks.
class Input {
 public:
  explicit Input(std::unique_ptr<InputFile> file) : file_(std::move(file)), chunk_(kInputChunk) {}

  // The bytes not yet consumed, a new chunk when there are none; empty at the end of the file.
  [[nodiscard]] std::span<const std::byte> rest() {
    if (begin_ == end_ && next_ < file_->size()) {
      begin_ = 0;
      end_ = std::min<std::uint64_t>(chunk_.size(), file_->size() - next_);
      file_->read_at(next_, std::span(chunk_).first(end_));
      next_ += end_;
    }
    return std::span(chunk_).subspan(begin_, end_ - begin_);
  }
  void consume(std::size_t bytes) { begin_ += bytes; }

  [[nodiscard]] const std::string& name() const { return file_->name(); }
  [[nodiscard]] std::uint64_t position() const { return next_ - (end_ - begin_); }
  [[nodiscard]] std::uint64_t size() const { return file_->size(); }

  template <class... Parts>
  [[noreturn]] void damaged(const Parts&... parts) const {
    fail(ErrorKind::kData, printable(name()), ": ", parts..., " at byte ", position(), " of ",
         size(), "; get the file again");
  }

 private:
  std::unique_ptr<InputFile> file_;
  std::vector<std::byte> chunk_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t next_ = 0;
};

class FileSource : public ByteSource {
 public:
  explicit FileSource(std::unique_ptr<InputFile> file) : input_(std::move(file)) {}
  const std::string& name() const override { return input_.name(); }
  std::uint64_t position() const override { return input_.position(); }
  std::uint64_t file_size() const override { return input_.size(); }

 protected:
  Input input_;
};

class PlainSource : public FileSource {
 public:
  using FileSource::FileSource;
  std::size_t read(std::span<std::byte> out) override {
    const auto rest = input_.rest();
    const auto bytes = std::min(rest.size(), out.size());
    std::copy_n(rest.begin(), bytes, out.begin());
    input_.consume(bytes);
    return bytes;
  }
};

class GzipSource : public FileSource {
 public:
  explicit GzipSource(std::unique_ptr<InputFile> file) : FileSource(std::move(file)) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) {
      fail(ErrorKind::kIo, "cannot start zlib for ", printable(name()));
    }
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() override { inflateEnd(&stream_); }

  std::size_t read(std::span<std::byte> out) override {
    if (out.empty()) return 0;
    out = out.first(std::min(out.size(), kInputChunk * 16));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out == out.size()) {
      const auto rest = input_.rest();
      if (rest.empty()) {
        if (inside_member_) input_.damaged("gzip stream is cut off");
        break;
      }
      if (!inside_member_) inflateReset(&stream_);
      inside_member_ = true;
      // zlib's interface takes no pointer to const; it does not write through it.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest.data()));
      stream_.avail_in = static_cast<uInt>(rest.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      input_.consume(rest.size() - stream_.avail_in);
      if (result == Z_STREAM_END) {
        inside_member_ = false;
      } else if (result == Z_MEM_ERROR) {
        fail(ErrorKind::kIo, "out of memory while reading ", printable(name()));
      } else if (result != Z_OK) {
        input_.damaged("corrupt gzip data (", stream_.msg != nullptr ? stream_.msg : "zlib", ")");
      }
    }
    return out.size() - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  bool inside_member_ = false;
};

class ZstdSource : public FileSource {
 public:
  explicit ZstdSource(std::unique_ptr<InputFile> file)
      : FileSource(std::move(file)), context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    if (!context_ || ZSTD_isError(ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax,
                                                         kMaxZstdWindowLog)) != 0) {
      fail(ErrorKind::kIo, "cannot start zstd for ", printable(name()));
    }
  }

  std::size_t read(std::span<std::byte> out) override {
    if (out.empty()) return 0;
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos == 0) {
      const auto rest = input_.rest();
      // With the input at its end, the decoder may still hold output of the frame.
      if (rest.empty() && !inside_frame_) break;
      ZSTD_inBuffer from{rest.data(), rest.size(), 0};
      const auto result = ZSTD_decompressStream(context_.get(), &to, &from);
      input_.consume(from.pos);
      if (ZSTD_isError(result) != 0) {
        input_.damaged("corrupt zstd data (", ZSTD_getErrorName(result), ")");
      }
      inside_frame_ = result != 0;
      if (rest.empty() && inside_frame_ && to.pos == 0) input_.damaged("zstd stream is cut off");
    }
    return to.pos;
  }

 private:
  std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context_;
  bool inside_frame_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_byte_source(FileSystem& fs, const std::string& path) {
  auto file = fs.open_input(path);
  std::array<unsigned char, 4> magic{};
  const auto known = std::min<std::uint64_t>(magic.size(), file->size());
  file->read_at(0, std::as_writable_bytes(std::span(magic)).first(known));
  if (magic[0] == 0x1f && magic[1] == 0x8b) return std::make_unique<GzipSource>(std::move(file));
  if (magic == std::array<unsigned char, 4>{0x28, 0xb5, 0x2f, 0xfd}) {
    return std::make_unique<ZstdSource>(std::move(file));
  }
  return std::make_unique<PlainSource>(std::move(file));
}

}  // namespace lockstep
