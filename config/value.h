#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockstep {

// One value of a recipe: nothing (an optional that is not set), a scalar, or an array.
struct Value {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<Value>> data;

  [[nodiscard]] bool is_set() const { return data.index() != 0; }
  friend bool operator==(const Value&, const Value&) = default;
};

// The value in TOML notation; "(not set)" for nothing. Doubles are written in the shortest form
// that reads back to the same bits, always recognisable as a float.
[[nodiscard]] std::string to_text(const Value& value);

// A string as a TOML basic string, quotes included.
[[nodiscard]] std::string quoted(std::string_view text);

// "a string", "an integer", ... for error messages.
[[nodiscard]] const char* kind_of(const Value& value);

}  // namespace lockstep
