#include "config/toml_text.h"

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

// toml++ 3.3 has inputs that break its internal assertions, in Debian's shared library an abort.
// Here it is compiled as headers, with assertions that throw.
struct ParserGaveUp : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void give_up(const char* condition) { throw ParserGaveUp(condition); }

}  // namespace
}  // namespace lockstep

#undef NDEBUG
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::lockstep::give_up(#condition))
#include <toml++/toml.h>

namespace lockstep {
namespace {

constexpr int kMaxKeyParts = 64;

// The parser and the destructor of what it builds recurse once per part of a dotted key, so a
// hostile key of a million parts would overflow the stack: refused before parsing.
void check_key_depth(std::string_view text, std::string_view file) {
  int line = 1;
  int dots = 0;
  std::string_view quote;  // what ends the string we are in
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (!quote.empty()) {
      if (c == '\\' && quote.front() == '"') {
        ++i;
      } else if (text.substr(i).starts_with(quote)) {
        i += quote.size() - 1;
        quote = {};
      } else if (c == '\n' && quote.size() == 1) {
        quote = {};
      }
    } else if (c == '"' || c == '\'') {
      const std::string_view three = text.substr(i, 3);
      quote = three == "\"\"\"" || three == "'''" ? three : text.substr(i, 1);
      i += quote.size() - 1;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '.' && ++dots > kMaxKeyParts) {
      fail(ErrorKind::kConfig, file, ":", line, ": a key with more than ", kMaxKeyParts,
           " parts; no recipe has such a key");
    } else if (c == ',' || c == '=' || c == '\n' || c == '{' || c == '[') {
      dots = 0;
    }
  }
}

toml::table parse(std::string_view text, std::string_view file) {
  check_key_depth(text, file);
  try {
    return toml::parse(text, file);
  } catch (const ParserGaveUp& error) {
    fail(ErrorKind::kConfig, file, ": not valid TOML: the parser gave up at its own check ",
         error.what());
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::kConfig, file, ":", error.source().begin.line, ":", error.source().begin.column,
         ": not valid TOML: ", printable(error.description()));
  }
}

Value to_value(const toml::node& node, const std::string& key, const std::string& origin) {
  if (const auto* flag = node.as_boolean()) return {flag->get()};
  if (const auto* integer = node.as_integer()) return {integer->get()};
  if (const auto* real = node.as_floating_point()) return {real->get()};
  if (const auto* text = node.as_string()) return {text->get()};
  if (const auto* array = node.as_array()) {
    std::vector<Value> items;
    for (const toml::node& each : *array) items.push_back(to_value(each, key, origin));
    return {std::move(items)};
  }
  fail(ErrorKind::kConfig, origin, ": ", printable(key),
       node.is_table() ? ": a table where a value belongs"
                       : ": dates and times have no place here; write a string");
}

void flatten(const toml::table& table, const std::string& prefix, std::string_view file,
             Settings& settings) {
  for (const auto& [name, node] : table) {
    const std::string path =
        prefix.empty() ? std::string(name.str()) : concat(prefix, ".", name.str());
    const std::string origin = concat(file, ":", name.source().begin.line);
    if (const auto* inner = node.as_table()) {
      settings[path] = {.value = {}, .origin = origin, .raw = {}, .is_table = true};
      flatten(*inner, path, file, settings);
    } else {
      settings[path] = {.value = to_value(node, path, origin), .origin = origin, .raw = {}};
    }
  }
}

}  // namespace

Settings parse_settings(std::string_view text, std::string_view file) {
  Settings settings;
  flatten(parse(text, file), "", file, settings);
  return settings;
}

}  // namespace lockstep
