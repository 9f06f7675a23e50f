#include "config/compare.h"

#include "base/error.h"
#include "base/hash.h"

namespace lockstep {

std::vector<Difference> differences(const FieldList& before, const FieldList& after) {
  LOCKSTEP_CHECK(before.fields.size() == after.fields.size(), "configs of different types");
  std::vector<Difference> found;
  for (std::size_t i = 0; i < before.fields.size(); ++i) {
    const Field& a = before.fields[i];
    const Field& b = after.fields[i];
    LOCKSTEP_CHECK(a.path == b.path, a.path, " against ", b.path);
    std::string old_text = to_text(a.get());
    std::string new_text = to_text(b.get());
    if (old_text != new_text) {
      found.push_back({a.path, std::move(old_text), std::move(new_text), a.rule.benign});
    }
  }
  return found;
}

std::string describe(const std::vector<Difference>& differences) {
  std::string text;
  for (const Difference& each : differences) {
    text += (text.empty() ? "" : "; ") + each.path + ": " + each.before + " -> " + each.after;
  }
  return text;
}

std::string fingerprint(const FieldList& list, std::string_view section) {
  const std::string prefix = section.empty() ? "" : std::string(section) + ".";
  Hasher128 hasher;
  for (const Field& each : list.fields) {
    if (!each.path.starts_with(prefix) || each.rule.benign) continue;
    hasher.add(each.path + "=" + to_text(each.get()) + "\n");
  }
  return hasher.hex();
}

}  // namespace lockstep
