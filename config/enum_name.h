#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// One enumerator and its name in recipes, logs and files. An enum used as a config field has one
// table, found by argument-dependent lookup:
//   constexpr auto enum_table(Remat) { return std::array{EnumName{Remat::kNone, "none"}, ...}; }
template <class E>
struct EnumName {
  E value;
  const char* name;
};
template <class E>
EnumName(E, const char*) -> EnumName<E>;  // clang 14 does not deduce it for an aggregate

template <class E>
concept NamedEnum = requires(E e) {
  enum_table(e)[0].name;
};

// The enumerator's name; "?" for a value outside the table.
template <NamedEnum E>
[[nodiscard]] constexpr const char* to_name(E value) {
  for (const auto& entry : enum_table(value)) {
    if (entry.value == value) return entry.name;
  }
  return "?";
}

// The enumerator of that exact name, or nothing.
template <NamedEnum E>
[[nodiscard]] constexpr std::optional<E> from_name(std::string_view name) {
  for (const auto& entry : enum_table(E{})) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

template <NamedEnum E>
[[nodiscard]] std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& entry : enum_table(E{})) names.emplace_back(entry.name);
  return names;
}

}  // namespace lockstep
