#include "tokenizer/json_field.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace lockstep {

JsonField::JsonField(const nlohmann::json& value, std::string place)
    : value_(&value), place_(std::move(place)) {}

void JsonField::wrong_type(std::string_view wanted) const {
  refuse("found ", value_->type_name(), " ", printable(value_->dump(), 60), ", wanted ", wanted);
}

void JsonField::expect_object() const {
  if (!value_->is_object()) wrong_type("an object");
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
  expect_object();
  const auto found = value_->find(std::string(key));
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonField(*found, concat(place_, place_.ends_with(": ") ? "" : ".", key));
}

JsonField JsonField::at(std::string_view key) const {
  auto field = find(key);
  if (!field) refuse("no '", key, "'");
  return *std::move(field);
}

void JsonField::allow_keys(std::initializer_list<std::string_view> keys) const {
  expect_object();
  for (const auto& [key, value] : value_->items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      refuse("unknown field '", printable(key), "'; its meaning cannot be guessed");
    }
  }
}

std::string JsonField::type() const { return at("type").text(); }

std::vector<JsonField> JsonField::items() const {
  if (!value_->is_array()) wrong_type("an array");
  std::vector<JsonField> fields;
  fields.reserve(value_->size());
  for (const auto& item : *value_) {
    fields.emplace_back(item, concat(place_, "[", fields.size(), "]"));
  }
  return fields;
}

std::string JsonField::text() const {
  if (!value_->is_string()) wrong_type("a string");
  return value_->get<std::string>();
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) wrong_type("true or false");
  return value_->get<bool>();
}

std::uint32_t JsonField::id() const {
  constexpr std::uint64_t kMaxId = 0x7fffffff;
  if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > kMaxId) {
    wrong_type("an integer from 0 to 2147483647");
  }
  return value_->get<std::uint32_t>();
}

bool JsonField::boolean_or(std::string_view key, bool otherwise) const {
  const auto field = find(key);
  return field ? field->boolean() : otherwise;
}

}  // namespace lockstep
