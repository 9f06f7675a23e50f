#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "io/file.h"

namespace lockstep {

// Scalars for TensorBoard: one file events.out.tfevents.<seconds>.<id> of TFRecords, each an Event
// protocol buffer (tensorflow/core/util/event.proto). Opening marks a start at `first_step`, so
// that TensorBoard drops what an earlier, killed process logged from there on. Not thread-safe.
class TensorBoardWriter {
 public:
  TensorBoardWriter(FileSystem& fs, const std::string& directory, std::int64_t first_step);

  void scalars(std::int64_t step, std::span<const std::pair<std::string_view, double>> values);
  void close() { file_->close(); }

 private:
  void write_record(std::string_view payload);
  std::unique_ptr<OutputFile> file_;
};

// The CRC-32C (Castagnoli) of the bytes. RFC 3720, appendix B.4.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

}  // namespace lockstep
