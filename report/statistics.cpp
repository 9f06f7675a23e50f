#include "report/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/rng.h"

namespace lockstep {
namespace {

constexpr double kZ = 1.959963984540054;  // 97.5% of the standard normal distribution
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint32_t kDraws = 0x626f6f74;  // keeps these draws apart from others of the seed

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// The ratio over one resample. A draw is 32 bits scaled to [0, n): its bias is below n / 2^32.
double resampled_ratio(std::span<const RatioTerm> terms, std::uint64_t seed,
                       std::uint32_t resample) {
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32U)};
  const std::uint64_t n = terms.size();
  double numerator = 0;
  double denominator = 0;
  for (std::uint64_t i = 0; i < n; i += 4) {
    const auto bits = philox4x32(key, {static_cast<std::uint32_t>(i / 4), resample, kDraws, 0});
    for (std::uint64_t j = 0; j < std::min<std::uint64_t>(4, n - i); ++j) {
      const RatioTerm& term = terms[(bits[j] * n) >> 32U];
      numerator += term.numerator;
      denominator += term.denominator;
    }
  }
  return numerator / denominator;
}

// Linear between the two nearest order statistics.
double quantile(const std::vector<double>& sorted, double p) {
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = place - static_cast<double>(below);
  return sorted[below] + share * (sorted[above] - sorted[below]);
}

// How many standard errors the difference found lies above `delta` (Tango 1998): the
// variance is taken at the most likely proportions whose difference is delta.
double tango_score(const PairedAnswers& answers, double delta) {
  const auto n = static_cast<double>(answers.n);
  const auto b = static_cast<double>(answers.only_a);
  const auto c = static_cast<double>(answers.only_b);
  const double linear = -b - c + (2 * n - b + c) * delta;
  const double constant = -c * delta * (1 - delta);
  const double root = std::sqrt(std::max(0.0, linear * linear - 8 * n * constant));
  const double q = (root - linear) / (4 * n);
  const double variance = n * (2 * q + delta * (1 - delta));
  const double difference = b - c - n * delta;
  if (variance <= 0) return difference == 0 ? 0 : std::copysign(HUGE_VAL, difference);
  return difference / std::sqrt(variance);
}

// The delta in [low, high] at which the score, which falls with delta, is `wanted`.
double solve_score(const PairedAnswers& answers, double low, double high, double wanted) {
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (low + high);
    (tango_score(answers, middle) > wanted ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

double t_quantile(double p, double degrees) {
  const double z = normal_quantile(p);
  const double z2 = z * z;
  const std::array<double, 4> terms = {
      z * (z2 + 1) / 4, z * ((5 * z2 + 16) * z2 + 3) / 96,
      z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
      z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160};
  double result = z;
  double power = 1;
  for (const double term : terms) result += term / (power *= degrees);
  return result;
}

Estimate bootstrap_ratio(std::span<const RatioTerm> terms, const BootstrapOptions& options,
                         ThreadPool& pool) {
  LOCKSTEP_CHECK(options.resamples >= 100 && terms.size() < std::uint64_t{1} << 32U,
                 options.resamples, " resamples of ", terms.size());
  Estimate estimate{
      .value = kNaN, .interval = {kNaN, kNaN}, .n = static_cast<std::int64_t>(terms.size())};
  double numerator = 0;
  double denominator = 0;
  for (const RatioTerm& term : terms) {
    numerator += term.numerator;
    denominator += term.denominator;
  }
  if (terms.empty() || !std::isfinite(numerator) || !(denominator > 0)) return estimate;
  estimate.value = numerator / denominator;
  if (terms.size() == 1) {
    estimate.interval = {estimate.value, estimate.value};
    return estimate;
  }
  std::vector<double> ratios(static_cast<std::size_t>(options.resamples));
  pool.parallel_for(options.resamples, [&](std::int64_t r, int) {
    ratios[static_cast<std::size_t>(r)] =
        resampled_ratio(terms, options.seed, static_cast<std::uint32_t>(r));
  });
  std::sort(ratios.begin(), ratios.end());
  const auto n = static_cast<double>(terms.size());
  const double tail = normal_distribution(-std::sqrt(n / (n - 1)) * t_quantile(0.975, n - 1));
  estimate.interval = {quantile(ratios, tail), quantile(ratios, 1 - tail)};
  return estimate;
}

Estimate accuracy_difference(const PairedAnswers& answers) {
  LOCKSTEP_CHECK(
      answers.only_a >= 0 && answers.only_b >= 0 && answers.only_a + answers.only_b <= answers.n,
      answers.n, " ", answers.only_a, " ", answers.only_b);
  if (answers.n == 0) return {.value = kNaN, .interval = {kNaN, kNaN}, .n = 0};
  const double value =
      static_cast<double>(answers.only_a - answers.only_b) / static_cast<double>(answers.n);
  return {.value = value,
          .interval = {solve_score(answers, -1, value, kZ), solve_score(answers, value, 1, -kZ)},
          .n = answers.n};
}

Estimate mean_of(std::span<const Estimate> estimates) {
  if (estimates.empty()) return {.value = kNaN, .interval = {kNaN, kNaN}, .n = 0};
  const auto count = static_cast<double>(estimates.size());
  Estimate mean;
  double below = 0;
  double above = 0;
  for (const Estimate& estimate : estimates) {
    mean.value += estimate.value / count;
    mean.n += estimate.n;
    const double to_low = (estimate.value - estimate.interval.low) / count;
    const double to_high = (estimate.interval.high - estimate.value) / count;
    below += to_low * to_low;
    above += to_high * to_high;
  }
  mean.interval = {mean.value - std::sqrt(below), mean.value + std::sqrt(above)};
  return mean;
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return "reproduced";
    case Verdict::kDiffers:
      return "differs";
    case Verdict::kNotEnoughData:
      return "not enough data";
  }
  return "";
}

Verdict judge(const Estimate& estimate, double tolerance, std::int64_t minimum) {
  if (estimate.n < minimum) return Verdict::kNotEnoughData;
  const auto [low, high] = estimate.interval;
  if (!std::isfinite(estimate.value) || !std::isfinite(low) || !std::isfinite(high)) {
    return Verdict::kDiffers;
  }
  if (low >= -tolerance && high <= tolerance) return Verdict::kReproduced;
  if (low > tolerance || high < -tolerance) return Verdict::kDiffers;
  return Verdict::kNotEnoughData;
}

}  // namespace lockstep
