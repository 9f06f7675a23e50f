#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lockstep {

// What counts as the same on each surface. Names:
//   c4_loss       held-out loss of the C4-like domain, nats a token
//   tasks         mean accuracy of the tasks; tasks/NAME: one task
//   perplexity    log-perplexity of all domains together, nats a token; perplexity/LABEL: one
//   token_kl      mean KL(B || A), nats a token
// "task" and "domain" stand for every single task and domain that is not named itself.
class Tolerances {
 public:
  // "surface=value", value a number >= 0 (kConfig, naming the nearest surface, otherwise).
  void set(std::string_view text);
  [[nodiscard]] double of(const std::string& surface) const;
  // Whether `surface` was set, and is not the default.
  [[nodiscard]] bool is_set(const std::string& surface) const { return given_.contains(surface); }
  // All in force: the defaults by kind, then what was given.
  [[nodiscard]] std::map<std::string, double> all() const;

 private:
  std::map<std::string, double> given_;
};

}  // namespace lockstep
