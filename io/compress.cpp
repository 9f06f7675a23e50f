#include <zlib.h>
#include <zstd.h>

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/compressed.h"

namespace lockstep {
namespace {

constexpr int kGzipLevel = 6;
constexpr int kZstdLevel = 3;
constexpr std::size_t kBlock = std::size_t{1} << 18;  // text gathered before it is compressed

}  // namespace

class CompressedWriter::Encoder {
 public:
  virtual ~Encoder() = default;
  // Compresses all of `text` to `file`; ends the stream when it is the last.
  virtual void encode(std::string_view text, bool last, AtomicFile& file) = 0;
};

class CompressedWriter::GzipEncoder : public Encoder {
 public:
  GzipEncoder() : out_(kBlock, '\0') {
    constexpr int kGzipFormat = 16 + MAX_WBITS;  // zlib then writes time 0
    constexpr int kMemoryLevel = 8;
    if (deflateInit2(&stream_, kGzipLevel, Z_DEFLATED, kGzipFormat, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      fail(ErrorKind::kIo, "cannot start zlib");
    }
  }
  GzipEncoder(const GzipEncoder&) = delete;
  GzipEncoder& operator=(const GzipEncoder&) = delete;
  ~GzipEncoder() override { deflateEnd(&stream_); }

  void encode(std::string_view text, bool last, AtomicFile& file) override {
    // zlib's interface takes no pointer to const; it does not write through it.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(text.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int result = deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      LOCKSTEP_CHECK(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR,
                     "zlib deflate gave ", result);
      file.append(std::string_view(out_).substr(0, out_.size() - stream_.avail_out));
    } while (stream_.avail_out == 0);
  }

 private:
  z_stream stream_{};
  std::string out_;
};

class CompressedWriter::ZstdEncoder : public Encoder {
 public:
  ZstdEncoder() : context_(ZSTD_createCCtx(), ZSTD_freeCCtx), out_(kBlock, '\0') {
    if (!context_) fail(ErrorKind::kIo, "cannot start zstd");
    check(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kZstdLevel));
    check(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1));
  }

  void encode(std::string_view text, bool last, AtomicFile& file) override {
    ZSTD_inBuffer from{text.data(), text.size(), 0};
    for (bool done = false; !done;) {
      ZSTD_outBuffer to{out_.data(), out_.size(), 0};
      const auto left = check(
          ZSTD_compressStream2(context_.get(), &to, &from, last ? ZSTD_e_end : ZSTD_e_continue));
      file.append(std::string_view(out_).substr(0, to.pos));
      done = last ? left == 0 : from.pos == from.size;
    }
  }

 private:
  static std::size_t check(std::size_t result) {
    LOCKSTEP_CHECK(ZSTD_isError(result) == 0, "zstd: ", ZSTD_getErrorName(result));
    return result;
  }

  std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context_;
  std::string out_;
};

CompressedWriter::CompressedWriter(FileSystem& fs, const std::string& path, Compression compression)
    : file_(fs, path) {
  if (compression == Compression::kGzip) encoder_ = std::make_unique<GzipEncoder>();
  if (compression == Compression::kZstd) encoder_ = std::make_unique<ZstdEncoder>();
}

CompressedWriter::~CompressedWriter() = default;

void CompressedWriter::append(std::string_view text) {
  // Blocks are cut at fixed places of the text, so that its bytes alone decide the file's.
  while (!text.empty()) {
    const auto part = text.substr(0, kBlock - pending_.size());
    pending_ += part;
    text.remove_prefix(part.size());
    if (pending_.size() == kBlock) flush(Last::kNo);
  }
}

void CompressedWriter::commit() {
  flush(Last::kYes);
  file_.commit();
}

void CompressedWriter::flush(Last last) {
  if (encoder_) {
    encoder_->encode(pending_, last == Last::kYes, file_);
  } else {
    file_.append(pending_);
  }
  pending_.clear();
}

}  // namespace lockstep
