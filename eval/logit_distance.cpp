#include "eval/logit_distance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace lockstep {
namespace {

constexpr std::size_t kTop = 5;

double log_sum_exp(std::span<const float> logits) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

// Ids of the largest logits, the lower id first among equals.
struct Top {
  std::array<std::size_t, kTop> ids{};
  std::size_t count = 0;

  explicit Top(std::span<const float> logits) {
    for (std::size_t v = 0; v < logits.size(); ++v) {
      if (count == kTop && !(logits[v] > logits[ids[kTop - 1]])) continue;
      std::size_t at = count < kTop ? count++ : kTop - 1;
      for (; at > 0 && logits[v] > logits[ids[at - 1]]; --at) ids[at] = ids[at - 1];
      ids[at] = v;
    }
  }
  [[nodiscard]] std::span<const std::size_t> all() const { return std::span(ids).first(count); }
};

}  // namespace

LogitDistance logit_distance(std::span<const float> reference, std::span<const float> ours) {
  const double reference_lse = log_sum_exp(reference);
  const double our_lse = log_sum_exp(ours);
  LogitDistance distance;
  for (std::size_t v = 0; v < reference.size(); ++v) {
    const auto p = static_cast<double>(reference[v]);
    const auto q = static_cast<double>(ours[v]);
    // A NaN must not pass as a small difference.
    const double difference = std::abs(p - q);
    distance.max_abs = difference <= distance.max_abs ? distance.max_abs : difference;
    const double log_p = p - reference_lse;
    distance.kl += std::exp(log_p) * (log_p - (q - our_lse));
  }
  const Top theirs(reference);
  const Top mine(ours);
  distance.same_top = theirs.ids[0] == mine.ids[0];
  const auto shared = std::count_if(theirs.all().begin(), theirs.all().end(), [&](std::size_t id) {
    return std::find(mine.all().begin(), mine.all().end(), id) != mine.all().end();
  });
  distance.top5 = static_cast<double>(shared) / static_cast<double>(theirs.count);
  return distance;
}

}  // namespace lockstep
