#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/comparison.h"

namespace lockstep {
namespace {

using Steps = std::set<std::int64_t>;

Steps steps_of(const std::map<std::int64_t, std::string>& files) {
  Steps steps;
  for (const auto& [step, path] : files) steps.insert(step);
  return steps;
}

// Where a side has something to run: weights, or logits that stand for them.
Steps weights_of(const Evidence& evidence) {
  Steps steps = steps_of(evidence.checkpoints);
  steps.merge(steps_of(evidence.logits));
  return steps;
}

Steps both(const Steps& a, const Steps& b) {
  Steps common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                        std::inserter(common, common.begin()));
  return common;
}

std::string listed(const Steps& steps) {
  if (steps.empty()) return "none";
  std::string text;
  std::size_t count = 0;
  for (const std::int64_t step : steps) {
    if (++count > 8) return concat(text, ", ... ", *steps.rbegin());
    text += concat(text.empty() ? "" : ", ", step);
  }
  return text;
}

// The last step at which a side has anything.
std::int64_t last_of(const Evidence& evidence) {
  std::int64_t last = kUnknownStep;
  for (const Steps& steps : {steps_of(evidence.evaluations), weights_of(evidence)}) {
    if (!steps.empty()) last = std::max(last, *steps.rbegin());
  }
  return last;
}

std::string place(const Evidence& evidence, std::int64_t step) {
  return step == kUnknownStep ? printable(evidence.path) : concat("step ", step);
}

// One model was named on purpose: it is compared with the other side's checkpoint of its step, else
// with its last.
std::optional<CommonStep> pair_of_model(const Evidence& a, const Evidence& b,
                                        std::vector<std::string>& notes) {
  CommonStep pair{.step_a = last_of(a), .step_b = last_of(b)};
  const bool a_is_model = a.kind == EvidenceKind::kModel;
  const bool b_is_model = b.kind == EvidenceKind::kModel;
  if (a_is_model == b_is_model) {
    if (pair.step_a != pair.step_b) {
      notes.push_back(concat("the models are of different steps: A ", place(a, pair.step_a), ", B ",
                             place(b, pair.step_b)));
    }
  } else {
    const Evidence& model = a_is_model ? a : b;
    const Evidence& run = a_is_model ? b : a;
    const std::int64_t wanted = a_is_model ? pair.step_a : pair.step_b;
    if (wanted != kUnknownStep) return {};
    if (last_of(run) == kUnknownStep) return {};
    notes.push_back(concat(printable(model.path), " does not tell its step: compared with step ",
                           last_of(run), ", the last of ", printable(run.path)));
  }
  pair.step = std::max(pair.step_a, pair.step_b);
  return pair;
}

}  // namespace

std::vector<CommonStep> common_steps(const Evidence& a, const Evidence& b,
                                     std::vector<std::string>& notes) {
  const Steps evaluated = both(steps_of(a.evaluations), steps_of(b.evaluations));
  const Steps weights = both(weights_of(a), weights_of(b));
  const Steps& chosen = evaluated.empty() ? weights : evaluated;
  if (chosen.empty() && (a.kind == EvidenceKind::kModel || b.kind == EvidenceKind::kModel)) {
    if (const auto pair = pair_of_model(a, b, notes)) return {*pair};
  }
  if (chosen.empty()) {
    notes.push_back(concat("no checkpoint is common: A has evaluations at ",
                           listed(steps_of(a.evaluations)), " and weights at ",
                           listed(weights_of(a)), "; B at ", listed(steps_of(b.evaluations)),
                           " and ", listed(weights_of(b))));
    return {};
  }
  if (steps_of(a.evaluations) != steps_of(b.evaluations)) {
    notes.push_back(concat("evaluations of A: steps ", listed(steps_of(a.evaluations)),
                           "; of B: steps ", listed(steps_of(b.evaluations)),
                           "; common: ", listed(evaluated)));
  }
  if (!weights.empty() && *weights.rbegin() > *chosen.rbegin()) {
    notes.push_back(concat("both have weights of step ", *weights.rbegin(),
                           " but not both an evaluation: lockstep eval --surfaces makes one"));
  }
  std::vector<CommonStep> steps;
  for (const std::int64_t step : chosen) steps.push_back({step, step, step});
  return steps;
}

}  // namespace lockstep
