#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"

// How sure a difference is. Every interval covers 95%.
namespace lockstep {

struct Interval {
  double low = 0;
  double high = 0;
};

// A statistic, its interval, and how many documents or questions it rests on.
struct Estimate {
  double value = 0;
  Interval interval;
  std::int64_t n = 0;
};

// One document: what it adds to the numerator and the denominator of a ratio of sums. For a paired
// difference of losses these are ce_a - ce_b and its targets.
struct RatioTerm {
  double numerator = 0;
  double denominator = 0;
};

struct BootstrapOptions {
  std::uint64_t seed = 0;
  int resamples = 10000;
};

// sum(numerator) / sum(denominator) over the documents and its percentile bootstrap interval, the
// documents drawn with replacement; the percentiles are widened for small samples by Student's t
// (the expanded percentile interval of Hesterberg 2015, "What teachers should know about the
// bootstrap", The American Statistician 69). A pure function of terms and options: draws come from
// a counter-based generator, so the bits do not depend on the pool's threads. Fewer than 2^32
// terms, their denominators above 0. NaN, interval included, for no terms or terms that are not
// finite; one term has an interval without width.
[[nodiscard]] Estimate bootstrap_ratio(std::span<const RatioTerm> terms,
                                       const BootstrapOptions& options, ThreadPool& pool);

// Questions that both sides answered, and those that only one of them got right.
struct PairedAnswers {
  std::int64_t n = 0;
  std::int64_t only_a = 0;
  std::int64_t only_b = 0;
};

// Accuracy of A less that of B over the same questions, with the score interval for paired
// proportions (Tango 1998, "Equivalence test and confidence interval for the difference in
// proportions for the paired-sample design", Statistics in Medicine 17). Unlike a bootstrap it
// keeps its width when the sides never disagree: z^2 / (n + z^2) then. NaN for n = 0.
[[nodiscard]] Estimate accuracy_difference(const PairedAnswers& answers);

// The mean of independent estimates, each counting the same; the interval by the method of variance
// estimates recovery (Zou and Donner 2008, "Construction of confidence limits about effect
// measures: a general approach", Statistics in Medicine 27). n is the sum.
[[nodiscard]] Estimate mean_of(std::span<const Estimate> estimates);

enum class Verdict {
  kReproduced,     // the whole interval lies within the tolerance
  kDiffers,        // it lies wholly outside
  kNotEnoughData,  // it does neither, or there are too few documents to tell
};
[[nodiscard]] std::string_view name_of(Verdict verdict);  // "reproduced", "differs", ...

// With fewer documents no interval of a bootstrap can be trusted.
inline constexpr std::int64_t kMinDocuments = 10;

// Equivalence test of |difference| <= tolerance. An estimate that is not finite differs: a loss
// that is NaN on one side only is no reproduction. n < minimum: not enough data.
[[nodiscard]] Verdict judge(const Estimate& estimate, double tolerance,
                            std::int64_t minimum = kMinDocuments);

// The quantile of Student's t distribution, p in (0, 1): the expansion in 1 / degrees of Abramowitz
// and Stegun, 26.7.5. From 9 degrees on it is within 1e-5 of the 97.5% quantile.
[[nodiscard]] double t_quantile(double p, double degrees);

}  // namespace lockstep
