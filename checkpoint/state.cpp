#include "checkpoint/state.h"

#include <bit>
#include <charconv>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr int kFormat = 1;

std::string hex_bits(double value) {
  std::string digits(16, '0');
  auto bits = std::bit_cast<std::uint64_t>(value);
  for (std::size_t i = 16; i-- > 0; bits >>= 4U) digits[i] = "0123456789abcdef"[bits & 15U];
  return digits;
}

OrderedJson hex_list(const std::vector<double>& values) {
  OrderedJson list = OrderedJson::array();
  for (const double value : values) list.push_back(hex_bits(value));
  return list;
}

// Reads the fields of one JSON object and notices those that nobody asked for.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string_view what) : object_(object), what_(what) {
    if (!object.is_object()) fail(ErrorKind::kData, what, ": not a JSON object");
  }

  std::int64_t integer(const char* key) {
    const Json& value = at(key);
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0) refuse(key, "a count");
    return value.get<std::int64_t>();
  }
  std::string text(const char* key) {
    const Json& value = at(key);
    if (!value.is_string()) refuse(key, "a string");
    return value.get<std::string>();
  }
  std::vector<double> doubles(const char* key) {
    const Json& value = at(key);
    if (!value.is_array() || value.size() > 4096) refuse(key, "a list of at most 4096");
    std::vector<double> list;
    for (const auto& item : value) {
      std::uint64_t bits = 0;
      const std::string digits = item.is_string() ? item.get<std::string>() : "";
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
      if (digits.size() != 16 || error != std::errc() || end != digits.data() + digits.size()) {
        refuse(key, "16 hexadecimal digits each");
      }
      list.push_back(std::bit_cast<double>(bits));
    }
    return list;
  }
  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (!asked_.contains(key)) {
        fail(ErrorKind::kData, what_, ": unknown field ", printable(key),
             "; written by a later version?");
      }
    }
  }

 private:
  const Json& at(const char* key) {
    asked_.insert(key);
    const auto found = object_.find(key);
    if (found == object_.end()) fail(ErrorKind::kData, what_, ": field ", key, " is missing");
    return *found;
  }
  [[noreturn]] void refuse(const char* key, const char* wanted) const {
    fail(ErrorKind::kData, what_, ": field ", key, " = ", printable(object_.at(key).dump(), 60),
         ", wanted ", wanted);
  }

  const Json& object_;
  std::string_view what_;
  std::set<std::string> asked_;
};

}  // namespace

std::string state_to_json(const TrainingState& state) {
  OrderedJson json;
  json["format"] = kFormat;
  json["step"] = state.step;
  json["adam_step"] = state.adam_step;
  json["tokens"] = state.tokens;
  json["next_batch"] = state.next_batch;
  json["skipped_in_row"] = state.skip.skipped_in_row;
  json["skipped_total"] = state.skip.skipped_total;
  json["window_losses"] = hex_list(state.skip.losses);
  json["window_norms"] = hex_list(state.skip.grad_norms);
  json["data_fingerprint"] = state.data_fingerprint;
  json["precision"] = state.precision;
  json["kernel_set"] = state.kernel_set;
  return json.dump(1) + "\n";
}

TrainingState state_from_json(std::string_view text, std::string_view what) {
  const Json json = parse_json(text, what);
  ObjectReader reader(json, what);
  if (const auto format = reader.integer("format"); format != kFormat) {
    fail(ErrorKind::kData, what, ": format ", format, ", this version reads ", kFormat);
  }
  TrainingState state;
  state.step = reader.integer("step");
  state.adam_step = reader.integer("adam_step");
  state.tokens = reader.integer("tokens");
  state.next_batch = reader.integer("next_batch");
  state.skip.skipped_in_row = reader.integer("skipped_in_row");
  state.skip.skipped_total = reader.integer("skipped_total");
  state.skip.losses = reader.doubles("window_losses");
  state.skip.grad_norms = reader.doubles("window_norms");
  state.data_fingerprint = reader.text("data_fingerprint");
  state.precision = reader.text("precision");
  state.kernel_set = reader.text("kernel_set");
  reader.finish();
  if (state.skip.losses.size() != state.skip.grad_norms.size()) {
    fail(ErrorKind::kData, what, ": ", state.skip.losses.size(), " window_losses but ",
         state.skip.grad_norms.size(), " window_norms");
  }
  return state;
}

}  // namespace lockstep
