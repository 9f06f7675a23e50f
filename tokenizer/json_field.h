#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace lockstep {

// A value inside a JSON document with its place in it ("file: a.b[3]"), so that every refusal names
// both. All members throw kInput. Borrows the document.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string place);

  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  [[nodiscard]] const std::string& place() const { return place_; }

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kInput, place_, ": ", parts...);
  }

  // Of an object. at() wants the key; find() is empty when the key is missing or null.
  [[nodiscard]] JsonField at(std::string_view key) const;
  [[nodiscard]] std::optional<JsonField> find(std::string_view key) const;
  // Refuses any key that is not in the list.
  void allow_keys(std::initializer_list<std::string_view> keys) const;
  // The "type" of a component.
  [[nodiscard]] std::string type() const;

  [[nodiscard]] std::vector<JsonField> items() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::uint32_t id() const;  // an integer from 0 to 2^31 - 1
  [[nodiscard]] bool boolean_or(std::string_view key, bool otherwise) const;

 private:
  void expect_object() const;
  [[noreturn]] void wrong_type(std::string_view wanted) const;

  const nlohmann::json* value_;
  std::string place_;
};

}  // namespace lockstep
