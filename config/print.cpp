#include "config/print.h"

#include "base/json.h"

namespace lockstep {
namespace {

std::string parent_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string last_name(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

OrderedJson json_of(const Value& value) {
  return std::visit(
      [](const auto& held) -> OrderedJson {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<Held, std::vector<Value>>) {
          OrderedJson array = OrderedJson::array();
          for (const Value& each : held) array.push_back(json_of(each));
          return array;
        } else {
          return held;
        }
      },
      value.data);
}

std::string markdown_cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, "\\");
  }
  return text;
}

}  // namespace

std::string to_toml(const FieldList& list, Comments comments) {
  std::string out;
  for (const Section& section : list.sections) {
    std::string body;
    for (const Field& field : list.fields) {
      if (parent_of(field.path) != section.path) continue;
      const Value value = field.get();
      std::string line = value.is_set() ? last_name(field.path) + " = " + to_text(value)
                                        : "# " + last_name(field.path) + " is not set";
      if (comments == Comments::kHelp) line += (value.is_set() ? "  # " : ": ") + field.help;
      body += line + "\n";
    }
    if (body.empty()) continue;
    if (!out.empty()) out += "\n";
    if (comments == Comments::kHelp && !section.help.empty()) out += "# " + section.help + "\n";
    if (!section.path.empty()) out += "[" + section.path + "]\n";
    out += body;
  }
  return out;
}

std::string to_json_text(const FieldList& list) {
  OrderedJson root = OrderedJson::object();
  for (const Field& field : list.fields) {
    OrderedJson* at = &root;
    std::string_view rest = field.path;
    for (std::size_t dot; (dot = rest.find('.')) != std::string_view::npos;) {
      at = &(*at)[std::string(rest.substr(0, dot))];
      rest.remove_prefix(dot + 1);
    }
    (*at)[std::string(rest)] = json_of(field.get());
  }
  return root.dump(2);
}

std::string to_markdown(const FieldList& list) {
  std::string out;
  for (const Section& section : list.sections) {
    std::string rows;
    for (const Field& field : list.fields) {
      if (parent_of(field.path) != section.path) continue;
      rows += "| `" + last_name(field.path) + "` | `" + markdown_cell(to_text(field.get())) +
              "` | " + markdown_cell(field.type) + " | " + markdown_cell(field.help) +
              (field.rule.benign ? " (may change on resume)" : "") + " |\n";
    }
    if (rows.empty()) continue;
    out += "## " + (section.path.empty() ? "Top level" : "[" + section.path + "]") + "\n\n";
    if (!section.help.empty()) out += section.help + "\n\n";
    out += "| key | default | accepts | meaning |\n| --- | --- | --- | --- |\n" + rows + "\n";
  }
  return out;
}

}  // namespace lockstep
