#include "train/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    table[i] = crc;
  }
  return table;
}

template <class T>
void put_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i));
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(value | 0x80U);
  out += static_cast<char>(value);
}

// Protocol buffer fields: key = number << 3 | wire type (0 varint, 1 fixed64, 2 bytes, 5 fixed32).
void put_bytes(std::string& out, unsigned number, std::string_view bytes) {
  put_varint(out, number << 3U | 2U);
  put_varint(out, bytes.size());
  out += bytes;
}
void put_int(std::string& out, unsigned number, std::int64_t value) {
  put_varint(out, number << 3U);
  put_varint(out, static_cast<std::uint64_t>(value));
}
void put_float(std::string& out, unsigned number, float value) {
  put_varint(out, number << 3U | 5U);
  put_little_endian(out, std::bit_cast<std::uint32_t>(value));
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Event: 1 wall_time (double), 2 step, 3 file_version, 5 summary, 7 session_log.
std::string event_at(std::int64_t step) {
  std::string event;
  put_varint(event, 1U << 3U | 1U);
  put_little_endian(event, std::bit_cast<std::uint64_t>(wall_seconds()));
  put_int(event, 2, step);
  return event;
}

// TFRecord stores checksums rotated and offset, so that a checksum of data that holds checksums is
// no fixed point.
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = make_crc_table();
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xffU] ^ (crc >> 8U);
  }
  return crc ^ 0xffffffffU;
}

TensorBoardWriter::TensorBoardWriter(FileSystem& fs, const std::string& directory,
                                     std::int64_t first_step) {
  const auto seconds = static_cast<std::int64_t>(wall_seconds());
  file_ = fs.open_output(
      join_path(directory, concat("events.out.tfevents.", seconds, ".", getpid(), ".lockstep")),
      OpenMode::kAppend);
  std::string version = event_at(0);
  put_bytes(version, 3, "brain.Event:2");
  write_record(version);
  std::string session;
  put_int(session, 1, 1);  // SessionLog.status = START
  std::string start = event_at(first_step);
  put_bytes(start, 7, session);
  write_record(start);
}

void TensorBoardWriter::scalars(std::int64_t step,
                                std::span<const std::pair<std::string_view, double>> values) {
  std::string summary;
  for (const auto& [tag, number] : values) {
    std::string value;  // Summary.Value: 1 tag, 2 simple_value
    put_bytes(value, 1, tag);
    put_float(value, 2, static_cast<float>(number));
    put_bytes(summary, 1, value);
  }
  std::string event = event_at(step);
  put_bytes(event, 5, summary);
  write_record(event);
}

void TensorBoardWriter::write_record(std::string_view payload) {
  std::string record;
  put_little_endian(record, static_cast<std::uint64_t>(payload.size()));
  put_little_endian(record, masked_crc(record));
  record += payload;
  put_little_endian(record, masked_crc(payload));
  file_->append(std::string_view(record));
}

}  // namespace lockstep
