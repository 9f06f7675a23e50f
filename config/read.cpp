#include "config/read.h"

#include <fstream>
#include <iterator>

#include "base/text.h"
#include "config/toml_text.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxRecipeBytes = std::size_t{1} << 20U;
constexpr const char* kCommandLine = "command line";

// The value of an override: TOML when the text is one TOML value, else the text itself.
Value override_value(const std::string& text) {
  if (text.empty()) return {};
  if (text.find('\n') == std::string::npos && text.find('#') == std::string::npos) {
    try {
      const Settings settings = parse_settings("value = " + text, kCommandLine);
      const auto value = settings.find("value");
      if (settings.size() == 1 && !value->second.is_table) return value->second.value;
    } catch (const Error&) {
      // Not a TOML value: a bare word.
    }
  }
  return {text};
}

void add_override(const std::string& text, const FieldList& list, Settings& settings) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail(ErrorKind::kConfig, "'", printable(text),
         "': a setting is written KEY=VALUE, for example ",
         list.fields.empty() ? "a.b" : list.fields.front().path, "=VALUE");
  }
  const std::string key = text.substr(0, equals);
  const std::string raw = text.substr(equals + 1);
  const auto found = settings.find(key);
  if (found != settings.end() && found->second.origin == kCommandLine) {
    fail(ErrorKind::kConfig, "command line: ", printable(key),
         " is given twice: ", printable(found->second.raw), " and ", printable(raw), "; keep one");
  }
  settings[key] = {.value = override_value(raw), .origin = kCommandLine, .raw = raw};
}

[[noreturn]] void fail_unknown(const FieldList& list, const std::string& path,
                               const Setting& setting) {
  // The deepest section of the path that exists, and the first name that does not.
  std::string section;
  std::string name = path;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    if (!list.has_section(path.substr(0, dot))) break;
    section = path.substr(0, dot);
    name = path.substr(dot + 1);
  }
  const std::vector<std::string> siblings = list.names_in(section);
  const std::string first = name.substr(0, std::min<std::size_t>(name.find('.'), 64));
  std::string nearest = nearest_name(first, siblings);
  if (!nearest.empty() && !section.empty()) nearest = section + "." + nearest;
  if (nearest.empty()) {
    // Perhaps the right name in the wrong section.
    const std::string last = path.substr(path.rfind('.') + 1);
    for (const Field& field : list.fields) {
      if (field.path == last || field.path.ends_with("." + last)) nearest = field.path;
    }
  }
  std::string known;
  for (const std::string& each : siblings) known += (known.empty() ? "" : ", ") + each;
  fail(ErrorKind::kConfig, setting.origin, ": unknown key '", printable(path), "'",
       setting.value.is_set() ? " = " + printable(to_text(setting.value)) : "",
       nearest.empty() ? "" : "; did you mean '" + nearest + "'?", " (",
       section.empty() ? "at the top" : "in [" + section + "]", ": ", known, ")");
}

// Whether the key is one of an earlier version, with the value that had no effect.
bool is_retired(const FieldList& list, const std::string& path, const Setting& setting) {
  for (const RetiredKey& key : list.retired) {
    if (key.path != path) continue;
    if (setting.value == key.harmless) return true;
    fail(ErrorKind::kConfig, setting.origin, ": ", path, " = ", printable(to_text(setting.value)),
         ": the key is no more; use ", key.instead);
  }
  return false;
}

void check_known(const FieldList& list, const Settings& settings) {
  for (const auto& [path, setting] : settings) {
    if (list.has_section(path)) {
      if (setting.is_table) continue;
      fail(ErrorKind::kConfig, setting.origin, ": ", path, " = ", printable(to_text(setting.value)),
           ": '", path, "' is a section; set one of its keys (", path, ".",
           list.names_in(path).front(), ", ...)");
    }
    if (is_retired(list, path, setting)) continue;
    const Field* field = list.find(path);
    if (field == nullptr) fail_unknown(list, path, setting);
    if (setting.is_table) {
      fail(ErrorKind::kConfig, setting.origin, ": ", path, " is a table; wanted ", field->type);
    }
  }
}

void set_field(Field& field, const Setting& setting) {
  std::string wanted = field.set(setting.value);
  if (!wanted.empty() && setting.origin == kCommandLine) {
    // On the command line 7, true and 1.5 are also good strings.
    const std::string as_text = field.set({setting.raw});
    if (as_text.empty()) wanted.clear();
  }
  if (!wanted.empty()) {
    fail(ErrorKind::kConfig, setting.origin, ": ", field.path, " = ",
         printable(to_text(setting.value)), " is ", kind_of(setting.value), "; wanted ", wanted,
         " (", field.help, ")");
  }
  field.origin = setting.origin;
}

}  // namespace

void read_into(FieldList& list, std::string_view toml, std::string_view path,
               std::span<const std::string> overrides) {
  const std::string file = printable(path);
  if (toml.size() > kMaxRecipeBytes) {
    fail(ErrorKind::kInput, file, ": ", toml.size(), " bytes; a recipe has at most ",
         kMaxRecipeBytes);
  }
  Settings settings = parse_settings(toml, file);
  for (const std::string& each : overrides) add_override(each, list, settings);
  check_known(list, settings);
  for (Field& field : list.fields) {
    const auto found = settings.find(field.path);
    if (found != settings.end()) set_field(field, found->second);
  }
}

std::string read_recipe_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorKind::kInput, printable(path), ": cannot open the recipe; is the path right?");
  std::string text(kMaxRecipeBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) fail(ErrorKind::kInput, printable(path), ": cannot read the recipe");
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxRecipeBytes) {
    fail(ErrorKind::kInput, printable(path), ": over ", kMaxRecipeBytes,
         " bytes; that is no recipe");
  }
  return text;
}

Error with_origin(const FieldList& list, const Error& error) {
  const std::string text = error.what();
  const Field* field = list.find(text.substr(0, text.find_first_of(": ")));
  if (field == nullptr || field->origin.empty()) return error;
  return {error.kind(), field->origin + ": " + text};
}

void fail_key(std::string_view key, const Value& value, std::string_view rule) {
  fail(ErrorKind::kConfig, key, " = ", printable(to_text(value)), ": ", rule);
}

}  // namespace lockstep
