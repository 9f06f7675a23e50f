#include "eval/choice_metrics.h"

#include <cmath>

#include "base/error.h"
#include "eval/text_steps.h"

namespace lockstep {
namespace {

// The variance of a sample of `right` ones and n - right zeros.
double sample_variance(std::int64_t right, std::int64_t n) {
  const auto ones = static_cast<double>(right);
  const auto all = static_cast<double>(n);
  return ones * (all - ones) / all / (all - 1);
}

}  // namespace

Picks pick(std::span<const Score> scores, std::span<const std::string> choices) {
  LOCKSTEP_CHECK(!scores.empty() && scores.size() == choices.size(), scores.size(), " scores of ",
                 choices.size(), " choices");
  const auto best = [&](auto value) {
    std::size_t at = 0;
    for (std::size_t i = 1; i < scores.size(); ++i) {
      if (value(i) > value(at)) at = i;
    }
    return at;
  };
  return {.acc = best([&](std::size_t i) { return scores[i].logprob; }),
          .acc_norm = best([&](std::size_t i) {
            return scores[i].logprob / static_cast<double>(count_characters(choices[i]));
          }),
          .acc_bytes = best([&](std::size_t i) {
            return scores[i].logprob / static_cast<double>(choices[i].size());
          })};
}

void ChoiceCounts::add(const Picks& picks, std::size_t gold) {
  ++n;
  acc += picks.acc == gold ? 1 : 0;
  acc_norm += picks.acc_norm == gold ? 1 : 0;
  acc_bytes += picks.acc_bytes == gold ? 1 : 0;
}

Share share_of(std::int64_t right, std::int64_t n) {
  Share share{.value = std::nan(""), .error = std::nan("")};
  if (n > 0) share.value = static_cast<double>(right) / static_cast<double>(n);
  if (n > 1) share.error = std::sqrt(sample_variance(right, n) / static_cast<double>(n));
  return share;
}

Share pooled(std::span<const ChoiceCounts> parts, std::int64_t ChoiceCounts::*right) {
  std::int64_t n = 0;
  std::int64_t hits = 0;
  double squares = 0;
  for (const ChoiceCounts& part : parts) {
    n += part.n;
    hits += part.*right;
    if (part.n > 1)
      squares += static_cast<double>(part.n - 1) * sample_variance(part.*right, part.n);
  }
  Share share = share_of(hits, n);
  const auto freedom = static_cast<double>(n - std::ssize(parts));
  share.error = freedom > 0 ? std::sqrt(squares / freedom / static_cast<double>(n)) : std::nan("");
  return share;
}

}  // namespace lockstep
