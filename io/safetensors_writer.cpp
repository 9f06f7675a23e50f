#include "io/safetensors_writer.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "io/atomic_file.h"
#include "io/safetensors_header.h"

namespace lockstep {
namespace {

constexpr std::size_t kWriteBuffer = std::size_t{1} << 20;

std::string quoted(const std::string& text) {
  LOCKSTEP_CHECK(is_valid_utf8(text), "not UTF-8: ", printable(text));
  return Json(text).dump();
}

std::uint64_t elements_of(const TensorSpec& spec) {
  std::uint64_t elements = 1;
  for (const auto dim : spec.shape) {
    LOCKSTEP_CHECK(!__builtin_mul_overflow(elements, dim, &elements), "tensor ",
                   printable(spec.name), ": its size overflows");
  }
  return elements;
}

std::uint64_t bytes_of(const TensorSpec& spec) {
  std::uint64_t bits = 0;
  LOCKSTEP_CHECK(!__builtin_mul_overflow(elements_of(spec), bits_of(spec.dtype), &bits), "tensor ",
                 printable(spec.name), ": its size overflows");
  LOCKSTEP_CHECK(bits % 8 == 0, "tensor ", printable(spec.name), ": not whole bytes");
  return bits / 8;
}

std::string length_prefix(std::uint64_t length) {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    bytes += static_cast<char>(length >> shift & 0xffU);
  }
  return bytes;
}

// Gathers small pieces, so that a thousand norms are not a thousand system calls.
class BufferedFile {
 public:
  BufferedFile(FileSystem& fs, const std::string& path) : file_(fs, path) {}

  void append(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > kWriteBuffer) flush();
    if (bytes.size() > kWriteBuffer) {
      file_.append(bytes);
    } else {
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    }
  }
  void commit() {
    flush();
    file_.commit();
  }

 private:
  void flush() {
    if (!buffer_.empty()) file_.append(std::span<const std::byte>(buffer_));
    buffer_.clear();
  }

  AtomicFile file_;
  std::vector<std::byte> buffer_;
};

// The specs of one file out of many.
struct Shard {
  std::vector<std::size_t> specs;
  std::uint64_t bytes = 0;
};

std::vector<Shard> plan_shards(std::span<const TensorSpec> specs, std::uint64_t max_bytes) {
  std::vector<Shard> shards(1);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto bytes = bytes_of(specs[i]);
    const bool fits = shards.back().bytes <= max_bytes && bytes <= max_bytes - shards.back().bytes;
    if (!shards.back().specs.empty() && !fits) shards.emplace_back();
    shards.back().specs.push_back(i);
    shards.back().bytes += bytes;
  }
  return shards;
}

std::string shard_name(std::size_t number, std::size_t count) {
  char text[64];
  (void)std::snprintf(text, sizeof text, "model-%05zu-of-%05zu.safetensors", number, count);
  return text;
}

}  // namespace

SafetensorsLayout layout_safetensors(std::span<const TensorSpec> specs, const Metadata& metadata) {
  SafetensorsLayout layout;
  layout.order.resize(specs.size());
  std::iota(layout.order.begin(), layout.order.end(), std::size_t{0});
  std::sort(layout.order.begin(), layout.order.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      return std::pair<int, const std::string&>(-static_cast<int>(bits_of(specs[i].dtype)),
                                                specs[i].name);
    };
    return key(a) < key(b);
  });
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (json.back() != '{') json += ',';
      json += quoted(key) + ":" + quoted(value);
    }
    json += '}';
  }
  std::set<std::string_view> names;
  std::uint64_t end = 0;
  for (const auto i : layout.order) {
    const auto& spec = specs[i];
    LOCKSTEP_CHECK(spec.name != "__metadata__" && names.insert(spec.name).second, "tensor name ",
                   printable(spec.name), " is reserved or given twice");
    LOCKSTEP_CHECK(spec.shape.size() <= kMaxRank, printable(spec.name), " has too many dimensions");
    TensorInfo info{.name = spec.name, .dtype = spec.dtype, .shape = spec.shape};
    info.elements = elements_of(spec);
    info.bytes = bytes_of(spec);
    info.offset = end;
    LOCKSTEP_CHECK(!__builtin_add_overflow(end, info.bytes, &end), "the file's size overflows");
    if (json.back() != '{') json += ',';
    json += quoted(spec.name) + concat(":{\"dtype\":\"", name_of(spec.dtype), "\",\"shape\":[");
    for (const auto dim : spec.shape) {
      json += (json.back() == '[' ? "" : ",") + std::to_string(dim);
    }
    json += concat("],\"data_offsets\":[", info.offset, ",", end, "]}");
    layout.tensors.push_back(std::move(info));
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  LOCKSTEP_CHECK(json.size() <= kMaxSafetensorsHeader && specs.size() <= kMaxTensors,
                 "too many tensors for one file: ", specs.size());
  layout.header = length_prefix(json.size()) + json;
  for (auto& tensor : layout.tensors) tensor.offset += layout.header.size();
  LOCKSTEP_CHECK(!__builtin_add_overflow(end, layout.header.size(), &layout.file_bytes),
                 "the file's size overflows");
  return layout;
}

void write_safetensors(FileSystem& fs, const std::string& path, std::span<const TensorSpec> specs,
                       const Metadata& metadata, const TensorSource& source) {
  const auto layout = layout_safetensors(specs, metadata);
  BufferedFile file(fs, path);
  file.append(std::as_bytes(std::span(layout.header)));
  for (std::size_t i = 0; i < layout.order.size(); ++i) {
    const auto& tensor = layout.tensors[i];
    std::uint64_t left = tensor.bytes;
    source(layout.order[i], specs[layout.order[i]], [&](std::span<const std::byte> bytes) {
      LOCKSTEP_CHECK(bytes.size() <= left, "tensor ", printable(tensor.name), ": more than its ",
                     tensor.bytes, " bytes were given");
      left -= bytes.size();
      file.append(bytes);
    });
    LOCKSTEP_CHECK(left == 0, "tensor ", printable(tensor.name), ": ", left, " of its ",
                   tensor.bytes, " bytes were not given");
  }
  file.commit();
}

std::vector<std::string> write_safetensors_sharded(FileSystem& fs, const std::string& directory,
                                                   std::span<const TensorSpec> specs,
                                                   const Metadata& metadata,
                                                   std::uint64_t max_shard_bytes,
                                                   const TensorSource& source) {
  const auto shards = plan_shards(specs, max_shard_bytes);
  std::vector<std::string> written;
  Json weight_map = Json::object();
  std::uint64_t total = 0;
  for (const auto& shard : shards) {
    const auto name = shards.size() == 1 ? std::string("model.safetensors")
                                         : shard_name(written.size() + 1, shards.size());
    std::vector<TensorSpec> part;
    for (const auto i : shard.specs) {
      part.push_back(specs[i]);
      LOCKSTEP_CHECK(weight_map.emplace(specs[i].name, name).second, "tensor name ",
                     printable(specs[i].name), " is given twice");
    }
    total += shard.bytes;
    write_safetensors(fs, join_path(directory, name), part, metadata,
                      [&](std::size_t i, const TensorSpec& spec, const TensorSink& put) {
                        source(shard.specs[i], spec, put);
                      });
    written.push_back(name);
  }
  if (shards.size() == 1) return written;
  const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}};
  written.emplace_back("model.safetensors.index.json");
  write_file_atomic(fs, join_path(directory, written.back()), index.dump(2) + "\n");
  return written;
}

}  // namespace lockstep
