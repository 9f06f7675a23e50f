#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/atomic_file.h"
#include "io/file.h"

// Text files that may be compressed: plain, gzip (zlib) or Zstandard (libzstd). Readers go by the
// first bytes of the file, never by its name. Memory is bounded whatever the file says (a zstd
// window over 128 MiB is refused).
namespace lockstep {

enum class Compression { kNone, kGzip, kZstd };

// By the name's ending: .gz, .zst, else none.
[[nodiscard]] Compression compression_of_name(std::string_view path);

// Decompressed bytes in order. Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills the front of `out`; the number of bytes, 0 only at the end. kData naming the file and the
  // offset in the compressed file when it is truncated or corrupt.
  [[nodiscard]] virtual std::size_t read(std::span<std::byte> out) = 0;
  [[nodiscard]] virtual const std::string& name() const = 0;
  // Bytes of the file consumed so far and in all, for progress.
  [[nodiscard]] virtual std::uint64_t position() const = 0;
  [[nodiscard]] virtual std::uint64_t file_size() const = 0;
};

// Concatenated gzip members and zstd frames are one stream. An empty file is an empty stream.
[[nodiscard]] std::unique_ptr<ByteSource> open_byte_source(FileSystem& fs, const std::string& path);

// Lines of a source. A last line without a newline counts; "\r" is kept. Not thread-safe.
class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source,
                      std::size_t max_line_bytes = std::size_t{256} << 20);

  // False at the end. `line` comes without its newline. kData when a line is over the limit.
  [[nodiscard]] bool next(std::string& line);
  // Of the line last given, from 1.
  [[nodiscard]] std::uint64_t line_number() const { return line_number_; }
  [[nodiscard]] const ByteSource& source() const { return *source_; }

 private:
  std::unique_ptr<ByteSource> source_;
  std::size_t max_line_bytes_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t line_number_ = 0;
};

// The whole decompressed text; kInput when it is longer than `max_bytes` (a bomb, say).
[[nodiscard]] std::string read_text(FileSystem& fs, const std::string& path,
                                    std::uint64_t max_bytes);

// Writes `path` compressed, atomically (io/atomic_file.h), with the same bytes for the same text:
// no time stamp, fixed levels (gzip 6, zstd 3). `fs` must outlive it. Not thread-safe.
class CompressedWriter {
 public:
  CompressedWriter(FileSystem& fs, const std::string& path, Compression compression);
  CompressedWriter(const CompressedWriter&) = delete;
  CompressedWriter& operator=(const CompressedWriter&) = delete;
  ~CompressedWriter();

  void append(std::string_view text);
  // Ends the stream and makes the file appear. Without it nothing appears.
  void commit();

 private:
  class Encoder;
  class GzipEncoder;
  class ZstdEncoder;
  enum class Last { kNo, kYes };
  void flush(Last last);

  AtomicFile file_;
  std::unique_ptr<Encoder> encoder_;  // none when plain
  std::string pending_;
};

}  // namespace lockstep
