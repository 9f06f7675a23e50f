#include "eval/text_template.h"

#include <charconv>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

const Json* find_field(const Json& json, std::string_view path) {
  const Json* at = &json;
  for (const std::string& name : split(path, '.')) {
    if (at->is_array()) {
      std::size_t index = 0;
      const char* end = name.data() + name.size();
      const auto [stop, error] = std::from_chars(name.data(), end, index);
      if (error != std::errc() || stop != end || index >= at->size()) return nullptr;
      at = &(*at)[index];
    } else {
      const auto found = at->is_object() ? at->find(name) : at->end();
      if (found == at->end()) return nullptr;
      at = &*found;
    }
  }
  return at;
}

const Json& field_of(const DataRow& row, std::string_view path) {
  const Json* found = find_field(row.json, path);
  if (found == nullptr) fail(ErrorKind::kInput, row.where, ": no field \"", path, "\"");
  return *found;
}

std::string field_text(const DataRow& row, std::string_view path) {
  const Json& value = field_of(row, path);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return value.dump();
  fail(ErrorKind::kInput, row.where, ": field \"", path, "\": ", value.type_name(),
       ", want text or an integer");
}

TextTemplate::TextTemplate(std::string_view text, std::string_view where) {
  while (!text.empty()) {
    const std::size_t open = text.find("{{");
    Part part;
    part.literal = text.substr(0, open);
    if (open == std::string_view::npos) {
      parts_.push_back(std::move(part));
      return;
    }
    const std::size_t close = text.find("}}", open);
    if (close == std::string_view::npos) {
      fail(ErrorKind::kConfig, where, ": \"{{\" without \"}}\" in \"", printable(text, 60), "\"");
    }
    const auto pieces = split(text.substr(open + 2, close - open - 2), '|');
    part.field = pieces.front();
    if (part.field.empty()) fail(ErrorKind::kConfig, where, ": a field without a name");
    for (std::size_t i = 1; i < pieces.size(); ++i) part.steps.emplace_back(pieces[i], where);
    parts_.push_back(std::move(part));
    text.remove_prefix(close + 2);
  }
}

std::string TextTemplate::render(const DataRow& row) const {
  std::string out;
  for (const Part& part : parts_) {
    out += part.literal;
    if (part.field.empty()) continue;
    try {
      out += apply_steps(part.steps, field_text(row, part.field));
    } catch (const Error& error) {
      if (std::string_view(error.what()).starts_with(row.where)) throw;
      fail(ErrorKind::kInput, row.where, ": field \"", part.field, "\": ", error.what());
    }
  }
  return out;
}

}  // namespace lockstep
