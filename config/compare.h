#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace lockstep {

// One field that two configs of the same type hold differently; values in TOML notation.
struct Difference {
  std::string path;
  std::string before;
  std::string after;
  bool benign = false;  // does not make another recipe
};

// In the order of declaration. LOCKSTEP_CHECKs that both lists have the same fields.
[[nodiscard]] std::vector<Difference> differences(const FieldList& before, const FieldList& after);

// "optim.lr: 0.0003 -> 0.001; model.d_model: 256 -> 512".
[[nodiscard]] std::string describe(const std::vector<Difference>& differences);

// 32 hexadecimal digits over the paths and values of every field of a section ("" for all) that
// is not benign. Equal for equal recipes on every machine.
[[nodiscard]] std::string fingerprint(const FieldList& list, std::string_view section = "");

template <class C>
[[nodiscard]] std::vector<Difference> config_differences(C before, C after) {
  return differences(fields_of(before), fields_of(after));
}
template <class C>
[[nodiscard]] std::string config_fingerprint(C config, std::string_view section = "") {
  return fingerprint(fields_of(config), section);
}

}  // namespace lockstep
