#include "report/tolerances.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

// docs/compare.md says why these.
const std::map<std::string, double>& defaults() {
  static const std::map<std::string, double> values = {{"c4_loss", 0.01}, {"tasks", 0.02},
                                                       {"task", 0.05},    {"perplexity", 0.01},
                                                       {"domain", 0.02},  {"token_kl", 1.5e-3}};
  return values;
}

bool is_name(const std::string& name) {
  for (const std::string_view prefix : {"tasks/", "perplexity/"}) {
    if (name.starts_with(prefix) && name.size() > prefix.size()) return true;
  }
  return defaults().contains(name);
}

}  // namespace

void Tolerances::set(std::string_view text) {
  const auto equals = text.rfind('=');
  const std::string name(text.substr(0, equals));
  if (equals == std::string_view::npos) {
    fail(ErrorKind::kConfig, "--tolerance ", printable(text), ": must be SURFACE=VALUE");
  }
  if (!is_name(name)) {
    std::vector<std::string> names;
    std::string list;
    for (const auto& [each, value] : defaults()) {
      names.push_back(each);
      list += (list.empty() ? "" : ", ") + each;
    }
    const std::string nearest = nearest_name(name, names);
    fail(ErrorKind::kConfig, "--tolerance: no surface ", printable(name),
         nearest.empty() ? "" : "; did you mean " + nearest + "?", " (", list,
         ", tasks/NAME, perplexity/LABEL)");
  }
  const std::string_view number = text.substr(equals + 1);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(value) ||
      value < 0) {
    fail(ErrorKind::kConfig, "--tolerance ", printable(name), "=", printable(number),
         ": must be a number, 0 or more");
  }
  given_.insert_or_assign(name, value);
}

double Tolerances::of(const std::string& surface) const {
  std::string kind = surface;
  if (surface.starts_with("tasks/")) kind = "task";
  if (surface.starts_with("perplexity/")) kind = "domain";
  for (const std::string& name : {surface, kind}) {
    if (const auto found = given_.find(name); found != given_.end()) return found->second;
  }
  return defaults().at(kind);
}

std::map<std::string, double> Tolerances::all() const {
  std::map<std::string, double> values = given_;
  values.insert(defaults().begin(), defaults().end());
  return values;
}

}  // namespace lockstep
