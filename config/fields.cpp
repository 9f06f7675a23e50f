#include "config/fields.h"

#include <algorithm>

#include "base/text.h"

namespace lockstep {
namespace config {

bool within(double value, const Rule& rule) {
  return (rule.above_min ? value > rule.min : value >= rule.min) && value <= rule.max;
}

std::string describe(const char* noun, const Rule& rule) {
  const auto number = [](double bound) {
    std::string text = to_text({bound});
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
  };
  const bool low = std::isfinite(rule.min);
  const bool high = std::isfinite(rule.max);
  std::string text = noun;
  if (low && high && !rule.above_min) {
    return text + " from " + number(rule.min) + " to " + number(rule.max);
  }
  if (low) text += (rule.above_min ? " above " : " of at least ") + number(rule.min);
  if (high) text += (low ? ", at most " : " of at most ") + number(rule.max);
  return text;
}

std::optional<std::int64_t> as_integer(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return *integer;
  const auto* real = std::get_if<double>(&value.data);
  constexpr double kExact = 9007199254740992.0;  // 2^53: every integer up to here is a double
  if (real == nullptr || std::trunc(*real) != *real || std::abs(*real) > kExact) return {};
  return static_cast<std::int64_t>(*real);
}

}  // namespace config

const Field* FieldList::find(std::string_view path) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.path == path; });
  return found == fields.end() ? nullptr : &*found;
}

Field* FieldList::find(std::string_view path) {
  return const_cast<Field*>(std::as_const(*this).find(path));
}

bool FieldList::has_section(std::string_view path) const {
  return std::any_of(sections.begin(), sections.end(),
                     [&](const Section& s) { return s.path == path; });
}

std::vector<std::string> FieldList::names_in(std::string_view section) const {
  std::vector<std::string> names;
  const auto add = [&](const std::string& path) {
    if (path.empty()) return;
    const std::size_t dot = path.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : path.substr(0, dot);
    if (parent == section) names.push_back(path.substr(dot == std::string::npos ? 0 : dot + 1));
  };
  for (const Field& each : fields) add(each.path);
  for (const Section& each : sections) add(each.path);
  return names;
}

}  // namespace lockstep
