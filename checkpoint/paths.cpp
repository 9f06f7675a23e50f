#include "checkpoint/paths.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace lockstep::paths {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kDigits = 8;

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return std::string(kPrefix) + digits;
}

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return {};
  name.remove_prefix(kPrefix.size());
  if (name.size() < kDigits ||
      !std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return {};
  }
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size()) return {};
  return step;
}

bool is_unfinished(std::string_view name) {
  const auto suffix = name.find(".tmp-");
  return suffix != std::string_view::npos && step_of(name.substr(0, suffix)).has_value();
}

}  // namespace lockstep::paths
