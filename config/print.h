#pragma once

#include <string>

#include "config/fields.h"

namespace lockstep {

enum class Comments { kNone, kHelp };

// The resolved config as TOML that reads back to the same config; an optional that is not set is a
// comment line.
[[nodiscard]] std::string to_toml(const FieldList& list, Comments comments);
// The same as one JSON object, sections nested; an optional that is not set is null.
[[nodiscard]] std::string to_json_text(const FieldList& list);
// A Markdown table for each section: key, default (the list's values), what it accepts, meaning.
[[nodiscard]] std::string to_markdown(const FieldList& list);

template <class C>
[[nodiscard]] std::string config_toml(C config, Comments comments = Comments::kHelp) {
  return to_toml(fields_of(config), comments);
}
template <class C>
[[nodiscard]] std::string config_json(C config) {
  return to_json_text(fields_of(config));
}
template <class C>
[[nodiscard]] std::string config_reference() {
  C config;
  return to_markdown(fields_of(config));
}

}  // namespace lockstep
