#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "config/value.h"

namespace lockstep {

// One value of a TOML text or of the command line. `value` is nothing for a table and for "key=".
struct Setting {
  Value value;
  std::string origin;
  std::string raw;  // an override's text as it was given
  bool is_table = false;
};
using Settings = std::map<std::string, Setting, std::less<>>;

// The values and tables of a TOML text by their dotted paths, from an untrusted source: deep
// nesting is refused before it costs stack. Throws kConfig naming `file`, line and column for what
// is not valid TOML, a key given twice, a date, or a table inside an array.
[[nodiscard]] Settings parse_settings(std::string_view text, std::string_view file);

}  // namespace lockstep
