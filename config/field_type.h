#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/enum_name.h"
#include "config/value.h"

namespace lockstep {

// What a field's value must obey beside its type. Bounds hold for each number of the value.
struct Rule {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is refused
  // A change does not make another recipe: the run may be resumed with it.
  bool benign = false;
};

namespace config {

[[nodiscard]] bool within(double value, const Rule& rule);
// "an integer from 1 to 8", "a number above 0".
[[nodiscard]] std::string describe(const char* noun, const Rule& rule);
// The integer that the value means: an integer, or a float that is exactly one (5e12).
[[nodiscard]] std::optional<std::int64_t> as_integer(const Value& value);

// How a member of type T is read, shown and checked. `set` leaves the member alone and says what
// is wanted when the value does not fit; it returns "" on success.
template <class T>
struct FieldType;

template <>
struct FieldType<bool> {
  static std::string name(const Rule&) { return "true or false"; }
  static Value get(bool member) { return {member}; }
  static std::string set(bool& member, const Value& value, const Rule& rule) {
    const bool* found = std::get_if<bool>(&value.data);
    if (found == nullptr) return name(rule);
    member = *found;
    return "";
  }
};

template <std::integral T>
struct FieldType<T> {
  static std::string name(const Rule& rule) { return describe("an integer", rule); }
  static Value get(T member) { return {static_cast<std::int64_t>(member)}; }
  static std::string set(T& member, const Value& value, const Rule& rule) {
    const std::optional<std::int64_t> found = as_integer(value);
    if (!found || !std::in_range<T>(*found)) return name(rule);
    if (!within(static_cast<double>(*found), rule)) return name(rule);
    member = static_cast<T>(*found);
    return "";
  }
};

template <std::floating_point T>
struct FieldType<T> {
  static std::string name(const Rule& rule) { return describe("a number", rule); }
  static Value get(T member) { return {static_cast<double>(member)}; }
  static std::string set(T& member, const Value& value, const Rule& rule) {
    double number = 0;
    if (const auto* real = std::get_if<double>(&value.data)) {
      number = *real;
    } else if (const auto* integer = std::get_if<std::int64_t>(&value.data)) {
      number = static_cast<double>(*integer);
    } else {
      return name(rule);
    }
    if (!std::isfinite(number) || !within(number, rule)) return name(rule);
    member = static_cast<T>(number);
    return "";
  }
};

template <>
struct FieldType<std::string> {
  static std::string name(const Rule&) { return "a string"; }
  static Value get(const std::string& member) { return {member}; }
  static std::string set(std::string& member, const Value& value, const Rule& rule) {
    const auto* found = std::get_if<std::string>(&value.data);
    if (found == nullptr) return name(rule);
    member = *found;
    return "";
  }
};

template <NamedEnum E>
struct FieldType<E> {
  static std::string name(const Rule&) {
    std::string text = "one of";
    for (const auto& each : names_of<E>()) text += (text == "one of" ? " " : ", ") + each;
    return text;
  }
  static Value get(E member) { return {std::string(to_name(member))}; }
  static std::string set(E& member, const Value& value, const Rule& rule) {
    const auto* found = std::get_if<std::string>(&value.data);
    if (found == nullptr) return name(rule);
    const std::optional<E> named = from_name<E>(*found);
    if (!named) {
      const std::string nearest = nearest_name(*found, names_of<E>());
      return name(rule) + (nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
    }
    member = *named;
    return "";
  }
};

template <class T>
struct FieldType<std::optional<T>> {
  static std::string name(const Rule& rule) { return FieldType<T>::name(rule) + ", or not set"; }
  static Value get(const std::optional<T>& member) {
    return member ? FieldType<T>::get(*member) : Value{};
  }
  static std::string set(std::optional<T>& member, const Value& value, const Rule& rule) {
    if (!value.is_set()) {
      member.reset();
      return "";
    }
    T found{};
    std::string wanted = FieldType<T>::set(found, value, rule);
    if (wanted.empty()) member = std::move(found);
    return wanted;
  }
};

template <class T>
struct FieldType<std::vector<T>> {
  static std::string name(const Rule& rule) { return "an array, each " + FieldType<T>::name(rule); }
  static Value get(const std::vector<T>& member) {
    std::vector<Value> values;
    for (const auto& each : member) values.push_back(FieldType<T>::get(each));
    return {std::move(values)};
  }
  static std::string set(std::vector<T>& member, const Value& value, const Rule& rule) {
    const auto* found = std::get_if<std::vector<Value>>(&value.data);
    if (found == nullptr) return name(rule);
    std::vector<T> result;
    for (const Value& each : *found) {
      T item{};
      if (!FieldType<T>::set(item, each, rule).empty()) return name(rule);
      result.push_back(std::move(item));
    }
    member = std::move(result);
    return "";
  }
};

template <class T, std::size_t N>
struct FieldType<std::array<T, N>> {
  static std::string name(const Rule& rule) {
    return "an array of " + std::to_string(N) + ", each " + FieldType<T>::name(rule);
  }
  static Value get(const std::array<T, N>& member) {
    return FieldType<std::vector<T>>::get({member.begin(), member.end()});
  }
  static std::string set(std::array<T, N>& member, const Value& value, const Rule& rule) {
    std::vector<T> items;
    if (!FieldType<std::vector<T>>::set(items, value, rule).empty() || items.size() != N) {
      return name(rule);
    }
    std::move(items.begin(), items.end(), member.begin());
    return "";
  }
};

}  // namespace config
}  // namespace lockstep
