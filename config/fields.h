#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/field_type.h"

namespace lockstep {

// One member of a config struct, by its dotted path. The functions refer to the struct they were
// collected from.
struct Field {
  std::string path;  // "optim.lr"
  std::string help;
  std::string type;  // what it accepts, in words: "a number above 0"
  Rule rule;
  std::function<Value()> get;
  std::function<std::string(const Value&)> set;  // "" or what is wanted instead
  std::string origin;  // where the value came from ("demo.toml:12"); empty for a default
};

// A key that earlier versions had. Files may still hold it with the value that had no effect.
struct RetiredKey {
  std::string path;
  Value harmless;
  std::string instead;  // the key that took its place
};

struct Section {
  std::string path;  // "" for the outermost
  std::string help;
};

// Every field of a config in the order of declaration. Reading, printing, hashing and comparing
// all work on this list (read.h, print.h, compare.h). Borrows the config, which must outlive it.
struct FieldList {
  std::vector<Section> sections;
  std::vector<Field> fields;
  std::vector<RetiredKey> retired;

  [[nodiscard]] Field* find(std::string_view path);
  [[nodiscard]] const Field* find(std::string_view path) const;
  [[nodiscard]] bool has_section(std::string_view path) const;
  // The names directly below a section: its fields and sections.
  [[nodiscard]] std::vector<std::string> names_in(std::string_view section) const;
};

// A config struct has its defaults in place and one function that names its members:
//   template <class V> void fields(V&& v) {
//     v("lr", lr, "peak learning rate", {.min = 0, .above_min = true});
//     v("schedule", schedule, "what a section holds");   // a struct with fields(): a section
//     v.retired("rate", {0.0}, "lr");   // a key that is no more, its harmless value, its heir
//   }
// Members: bool, integers, floats, std::string, enums with a table (enum_name.h), and optionals,
// vectors and arrays of those. A struct with `void apply_preset()` declares its "preset" field
// first; it runs as soon as that field was set, so that later fields override the preset.
class FieldCollector {
 public:
  FieldCollector(FieldList& list, std::string prefix, bool benign)
      : list_(list), prefix_(std::move(prefix)), benign_(benign) {}

  template <class T>
  void operator()(const char* name, T& member, const char* help, Rule rule = {}) {
    const std::string path = prefix_.empty() ? name : prefix_ + "." + name;
    rule.benign = rule.benign || benign_;
    if constexpr (requires { member.fields(*this); }) {
      collect(list_, member, {path, help}, rule.benign);
    } else {
      using Type = config::FieldType<T>;
      list_.fields.push_back(
          {path,
           help,
           Type::name(rule),
           rule,
           [&member] { return Type::get(member); },
           [&member, rule](const Value& v) { return Type::set(member, v, rule); },
           {}});
    }
  }

  void retired(const char* name, Value harmless, const char* instead) {
    const auto path = [&](const char* key) { return prefix_.empty() ? key : prefix_ + "." + key; };
    list_.retired.push_back({path(name), std::move(harmless), path(instead)});
  }

  template <class C>
  static void collect(FieldList& list, C& config, const Section& section, bool benign) {
    list.sections.push_back(section);
    config.fields(FieldCollector(list, section.path, benign));
    if constexpr (requires { config.apply_preset(); }) {
      Field& preset = *list.find(section.path.empty() ? "preset" : section.path + ".preset");
      preset.set = [set = preset.set, &config](const Value& value) {
        std::string wanted = set(value);
        if (wanted.empty()) config.apply_preset();
        return wanted;
      };
    }
  }

 private:
  FieldList& list_;
  std::string prefix_;
  bool benign_;
};

template <class C>
[[nodiscard]] FieldList fields_of(C& config) {
  FieldList list;
  FieldCollector::collect(list, config, {"", ""}, false);
  return list;
}

}  // namespace lockstep
