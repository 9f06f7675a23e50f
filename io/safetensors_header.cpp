#include "io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/json_events.h"

namespace lockstep {
namespace {

// Fills a SafetensorsHeader from the header's JSON. Offsets are still relative to the payload.
class HeaderEvents : public JsonEvents {
 public:
  HeaderEvents(std::string where, SafetensorsHeader& header)
      : JsonEvents(std::move(where)), header_(header) {}

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kOutside:
        place_ = Place::kTop;
        return true;
      case Place::kEntryValue:
        place_ = Place::kEntry;
        return true;
      case Place::kMetadataValue:
        place_ = Place::kMetadata;
        return true;
      default:
        reject("an object");
    }
  }

  bool end_object() override {
    if (place_ == Place::kEntry) finish_tensor();
    place_ = place_ == Place::kTop ? Place::kOutside : Place::kTop;
    return true;
  }

  bool key(Json::string_t& name) override {
    if (place_ == Place::kTop) {
      start_entry(name);
    } else if (place_ == Place::kEntry) {
      start_field(name);
    } else {
      metadata_key_ = name;
      place_ = Place::kMetadataText;
    }
    return true;
  }

  bool string(Json::string_t& value) override {
    if (place_ == Place::kMetadataText) {
      if (!header_.metadata.emplace(metadata_key_, value).second) {
        fail(ErrorKind::kData, where(), ": __metadata__ key \"", printable(metadata_key_),
             "\" appears twice");
      }
      place_ = Place::kMetadata;
      return true;
    }
    if (place_ != Place::kDType) reject(concat("the string \"", printable(value, 80), "\""));
    const auto dtype = stored_dtype_of_name(value);
    if (!dtype) reject(concat("the unknown dtype \"", printable(value, 40), "\""));
    tensor_.dtype = *dtype;
    place_ = Place::kEntry;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kShape) {
      place_ = Place::kShapeNumbers;
    } else if (place_ == Place::kOffsets) {
      place_ = Place::kOffsetNumbers;
    } else {
      reject("an array");
    }
    return true;
  }

  bool number_unsigned(Json::number_unsigned_t value) override {
    if (place_ == Place::kShapeNumbers) {
      if (tensor_.shape.size() == kMaxRank) reject(concat("more than ", kMaxRank, " dimensions"));
      tensor_.shape.push_back(value);
    } else if (place_ == Place::kOffsetNumbers && offset_count_ < offsets_.size()) {
      offsets_[offset_count_++] = value;
    } else {
      reject(concat("the number ", value));
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::kOffsetNumbers && offset_count_ != 2) reject("fewer than two numbers");
    place_ = Place::kEntry;
    return true;
  }

 protected:
  [[nodiscard]] std::string refusal(const std::string& found) const override {
    const auto field = [&](const char* wanted) {
      return concat("tensor \"", printable(tensor_.name), "\": ", wanted, ", found ", found);
    };
    switch (place_) {
      case Place::kOutside:
      case Place::kTop:
        break;
      case Place::kMetadataValue:
        return "__metadata__ must be an object, found " + found;
      case Place::kMetadata:
      case Place::kMetadataText:
        return concat("__metadata__ key \"", printable(metadata_key_),
                      "\" must be a string, found ", found);
      case Place::kEntryValue:
      case Place::kEntry:
        return field("an object with dtype, shape and data_offsets is wanted");
      case Place::kDType:
        return field("dtype must be the name of a known dtype");
      case Place::kShape:
      case Place::kShapeNumbers:
        return field("shape must be an array of whole numbers from 0 to 2^64 - 1");
      case Place::kOffsets:
      case Place::kOffsetNumbers:
        return field("data_offsets must be two whole numbers from 0 to 2^64 - 1");
    }
    return "an object of tensors is wanted, found " + found;
  }

 private:
  enum class Place {
    kOutside,
    kTop,
    kMetadataValue,  // after "__metadata__":
    kMetadata,
    kMetadataText,
    kEntryValue,  // after "a tensor's name":
    kEntry,
    kDType,
    kShape,
    kShapeNumbers,
    kOffsets,
    kOffsetNumbers,
  };

  [[nodiscard]] std::string tensor_where() const {
    return concat(where(), ": tensor \"", printable(tensor_.name), "\"");
  }

  void start_entry(const std::string& name) {
    if (name == "__metadata__") {
      if (std::exchange(metadata_seen_, true)) {
        fail(ErrorKind::kData, where(), ": __metadata__ appears twice");
      }
      place_ = Place::kMetadataValue;
      return;
    }
    if (header_.tensors.size() == kMaxTensors) {
      fail(ErrorKind::kData, where(), ": more than ", kMaxTensors, " tensors");
    }
    tensor_ = TensorInfo{};
    tensor_.name = name;
    offset_count_ = 0;
    seen_ = {};
    place_ = Place::kEntryValue;
  }

  void start_field(const std::string& name) {
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      if (name != kFields[i]) continue;
      if (std::exchange(seen_[i], true)) {
        fail(ErrorKind::kData, tensor_where(), ": ", name, " appears twice");
      }
      constexpr std::array kPlaces = {Place::kDType, Place::kShape, Place::kOffsets};
      place_ = kPlaces[i];
      return;
    }
    fail(ErrorKind::kData, tensor_where(), ": unknown field \"", printable(name, 80), "\"");
  }

  void finish_tensor() {
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      if (!seen_[i]) fail(ErrorKind::kData, tensor_where(), ": ", kFields[i], " is missing");
    }
    const auto too_large = [&] {
      fail(ErrorKind::kData, tensor_where(), ": the size of its shape overflows 64 bits");
    };
    tensor_.elements = 1;
    for (const auto dim : tensor_.shape) {
      if (__builtin_mul_overflow(tensor_.elements, dim, &tensor_.elements)) too_large();
    }
    std::uint64_t bits = 0;
    if (__builtin_mul_overflow(tensor_.elements, bits_of(tensor_.dtype), &bits)) too_large();
    if (bits % 8 != 0) {
      fail(ErrorKind::kData, tensor_where(), ": ", tensor_.elements, " elements of ",
           name_of(tensor_.dtype), " do not fill whole bytes");
    }
    tensor_.bytes = bits / 8;
    const auto [begin, end] = offsets_;
    if (begin > end || end - begin != tensor_.bytes) {
      fail(ErrorKind::kData, tensor_where(), ": data_offsets [", begin, ", ", end,
           "] do not span the ", tensor_.bytes, " bytes that ", name_of(tensor_.dtype),
           " and the shape take");
    }
    tensor_.offset = begin;
    header_.tensors.push_back(std::move(tensor_));
  }

  static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};

  SafetensorsHeader& header_;
  Place place_ = Place::kOutside;
  TensorInfo tensor_;
  std::array<std::uint64_t, 2> offsets_{};
  std::size_t offset_count_ = 0;
  std::array<bool, 3> seen_{};
  std::string metadata_key_;
  bool metadata_seen_ = false;
};

void check_names(const SafetensorsHeader& header, const std::string& where) {
  std::vector<std::string_view> names;
  names.reserve(header.tensors.size());
  for (const auto& tensor : header.tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    fail(ErrorKind::kData, where, ": tensor \"", printable(*twice), "\" appears twice");
  }
}

// Sorts the tensors and checks that they cover the payload once, without gap; then makes their
// offsets count from the start of the file.
void check_layout(SafetensorsHeader& header, const std::string& where, std::uint64_t payload_offset,
                  std::uint64_t payload) {
  auto& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  std::uint64_t end = 0;
  for (auto& tensor : tensors) {
    if (tensor.offset != end) {
      fail(ErrorKind::kData, where, ": tensor \"", printable(tensor.name), "\" begins at byte ",
           tensor.offset, " of the payload, but the tensors before it end at byte ", end,
           tensor.offset < end ? " (overlap)" : " (gap)");
    }
    end += tensor.bytes;
    if (end > payload) {
      fail(ErrorKind::kData, where, ": tensor \"", printable(tensor.name), "\" ends at byte ", end,
           " of the payload, but the file is cut off after ", payload, " bytes of it");
    }
    tensor.offset += payload_offset;
  }
  if (end != payload) {
    fail(ErrorKind::kData, where, ": the tensors take ", end, " bytes, but ", payload,
         " follow the header (trailing data)");
  }
}

}  // namespace

SafetensorsHeader read_safetensors_header(const InputFile& file) {
  const auto where = printable(file.name()) + ": safetensors header";
  std::array<unsigned char, 8> start{};
  if (file.size() < start.size()) {
    fail(ErrorKind::kData, where, ": the file has ", file.size(), " bytes, at least 10 are wanted");
  }
  file.read_at(0, std::as_writable_bytes(std::span(start)));
  std::uint64_t length = 0;
  for (std::size_t i = start.size(); i-- > 0;) length = length << 8U | start[i];
  if (length > kMaxSafetensorsHeader) {
    fail(ErrorKind::kData, where, ": its length is given as ", length, ", at most ",
         kMaxSafetensorsHeader, " are allowed; this is not a safetensors file or it is damaged");
  }
  const auto payload_offset = start.size() + length;
  if (payload_offset > file.size()) {
    fail(ErrorKind::kData, where, ": its length is given as ", length, ", but the file has only ",
         file.size(), " bytes; it is cut off or damaged");
  }
  std::string text(length, '\0');
  file.read_at(start.size(), std::as_writable_bytes(std::span(text)));
  if (length < 2 || text.front() != '{') {
    fail(ErrorKind::kData, where, ": it does not begin with '{'");
  }
  const auto last = text.find_last_not_of(' ');
  if (text[last] != '}') {
    fail(ErrorKind::kData, where, ": only spaces may follow the closing '}'");
  }
  SafetensorsHeader header;
  HeaderEvents(where, header).run(std::string_view(text).substr(0, last + 1));
  text = std::string();
  check_names(header, where);
  check_layout(header, where, payload_offset, file.size() - payload_offset);
  return header;
}

}  // namespace lockstep
