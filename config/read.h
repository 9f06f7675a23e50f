#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/fields.h"

namespace lockstep {

// Sets the fields that a TOML text and then the overrides ("optim.lr=1e-3") name; an override wins
// over the text. Fields are set in the order of their declaration. An override's value is a TOML
// value; a bare word counts as a string, and nothing ("key=") unsets an optional.
// Throws kConfig naming the place, key, value, rule and nearest key for: a syntax error, an unknown
// key, a wrong type, a value out of range, a key given twice. `file` is the name used in messages.
void read_into(FieldList& list, std::string_view toml, std::string_view file,
               std::span<const std::string> overrides);

// The whole of a recipe file. Throws kInput when it cannot be read or is over 1 MiB.
[[nodiscard]] std::string read_recipe_file(const std::string& path);

// `error` of a validate() with the origin of the key it begins with ("optim.lr: ...") put before
// it.
[[nodiscard]] Error with_origin(const FieldList& list, const Error& error);

// Throws kConfig "KEY = VALUE: RULE" for a struct's validate().
[[noreturn]] void fail_key(std::string_view key, const Value& value, std::string_view rule);

// Defaults, then the text, then the overrides, then validate().
template <class C>
[[nodiscard]] C read_config(std::string_view toml, std::string_view file,
                            std::span<const std::string> overrides = {}) {
  C config;
  FieldList list = fields_of(config);
  read_into(list, toml, file, overrides);
  try {
    config.validate();
  } catch (const Error& error) {
    throw with_origin(list, error);
  }
  return config;
}

template <class C>
[[nodiscard]] C read_config_file(const std::string& path,
                                 std::span<const std::string> overrides = {}) {
  return read_config<C>(read_recipe_file(path), path, overrides);
}

}  // namespace lockstep
