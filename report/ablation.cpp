#include "report/ablation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double median(std::vector<double> values) {
  if (values.empty()) return kNaN;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Seconds of each step, in its block; the first step of a block only where it is alone.
std::vector<std::vector<double>> seconds_by_block(std::span<const CurvePoint> curve,
                                                  std::int64_t block) {
  std::vector<std::vector<double>> blocks;
  for (const CurvePoint& point : curve) {
    if (!std::isfinite(point.seconds) || point.step < 1) continue;
    const auto index = static_cast<std::size_t>((point.step - 1) / block);
    if (index >= blocks.size()) blocks.resize(index + 1);
    blocks[index].push_back(point.seconds);
  }
  for (auto& seconds : blocks) {
    if (seconds.size() > 1) seconds.erase(seconds.begin());
  }
  return blocks;
}

void require_same_batches(const MeasuredVariant& a, const MeasuredVariant& b) {
  for (std::size_t i = 0; i < std::max(a.curve.size(), b.curve.size()); ++i) {
    if (i < a.curve.size() && i < b.curve.size() && a.curve[i].step == b.curve[i].step &&
        a.curve[i].batch_digest == b.curve[i].batch_digest) {
      continue;
    }
    fail(ErrorKind::kData, "step ", i < a.curve.size() ? a.curve[i].step : b.curve[i].step, ": ",
         printable(a.variant.label), " and ", printable(b.variant.label),
         " saw different batches; train both anew in an empty directory");
  }
}

Estimate speed_ratio(std::span<const CurvePoint> base, std::span<const CurvePoint> other,
                     std::int64_t block) {
  const auto a = block_seconds(base, block);
  const auto b = block_seconds(other, block);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] > 0 && b[i] > 0) ratios.push_back(a[i] / b[i]);
  }
  return median_with_interval(std::move(ratios));
}

Estimate heldout_delta(const MeasuredVariant& base, const MeasuredVariant& other,
                       ThreadPool& pool) {
  const auto& a = base.heldout.documents;
  const auto& b = other.heldout.documents;
  if (a.empty() && b.empty()) return {.value = kNaN, .interval = {kNaN, kNaN}, .n = 0};
  std::vector<RatioTerm> terms;
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) {
    same =
        a[i].document == b[i].document && a[i].targets == b[i].targets && a[i].label == b[i].label;
    if (a[i].targets == 0) continue;
    terms.push_back({b[i].ce - a[i].ce, static_cast<double>(a[i].targets)});
  }
  if (!same) {
    fail(ErrorKind::kData, printable(base.variant.label), " and ", printable(other.variant.label),
         " were evaluated on different documents; evaluate both on the same eval.mix");
  }
  return bootstrap_ratio(terms, {}, pool);
}

AblationRow row_of(const MeasuredVariant& measured, std::int64_t block) {
  const Recipe& recipe = measured.variant.recipe;
  AblationRow row;
  row.label = measured.variant.label;
  row.directory = recipe.directory();
  row.size = variant_size(recipe);
  std::vector<double> seconds;
  for (const auto& of_block : seconds_by_block(measured.curve, block)) {
    seconds.insert(seconds.end(), of_block.begin(), of_block.end());
  }
  row.step_seconds = median(std::move(seconds));
  row.tokens_per_s = static_cast<double>(recipe.tokens_per_step()) / row.step_seconds;
  row.train_loss = measured.curve.empty() ? kNaN : measured.curve.back().loss;
  row.heldout_loss = measured.heldout.documents.empty() ? kNaN : measured.heldout.total().strict();
  row.speed_ratio = {.value = kNaN, .interval = {kNaN, kNaN}, .n = 0};
  row.heldout_delta = row.speed_ratio;
  return row;
}

std::string with_interval(const char* pattern, const Estimate& estimate) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), pattern, estimate.value, estimate.interval.low,
                estimate.interval.high);
  return text.data();
}

}  // namespace

Estimate median_with_interval(std::vector<double> values) {
  if (values.empty()) return {.value = kNaN, .interval = {kNaN, kNaN}, .n = 0};
  std::sort(values.begin(), values.end());
  const auto n = std::ssize(values);
  // The largest rank from either end with P(Binomial(n, 1/2) < rank) <= 2.5%.
  std::int64_t rank = 0;
  double log_term = -static_cast<double>(n) * std::log(2.0);  // of P(Binomial = rank)
  for (double below = std::exp(log_term); below <= 0.025 && rank + 1 <= n / 2;) {
    ++rank;
    log_term += std::log(static_cast<double>(n - rank + 1) / static_cast<double>(rank));
    below += std::exp(log_term);
  }
  const std::int64_t first = std::max<std::int64_t>(rank - 1, 0);
  Estimate estimate;
  estimate.interval = {values[static_cast<std::size_t>(first)],
                       values[static_cast<std::size_t>(n - 1 - first)]};
  estimate.n = n;
  estimate.value = median(std::move(values));
  return estimate;
}

std::vector<double> block_seconds(std::span<const CurvePoint> curve, std::int64_t block) {
  LOCKSTEP_CHECK(block > 0, block);
  std::vector<double> out;
  for (auto& seconds : seconds_by_block(curve, block)) out.push_back(median(std::move(seconds)));
  return out;
}

Ablation summarise(std::span<const MeasuredVariant> variants, std::int64_t block,
                   ThreadPool& pool) {
  LOCKSTEP_CHECK(!variants.empty(), "no variants");
  const MeasuredVariant& base = variants.front();
  Ablation ablation;
  ablation.block = block;
  ablation.steps = base.curve.empty() ? 0 : base.curve.back().step;
  ablation.tokens = base.curve.empty() ? 0 : base.curve.back().tokens;
  for (const MeasuredVariant& measured : variants) {
    AblationRow row = row_of(measured, block);
    if (&measured != &base) {
      require_same_batches(base, measured);
      row.speed_ratio = speed_ratio(base.curve, measured.curve, block);
      row.heldout_delta = heldout_delta(base, measured, pool);
    }
    ablation.rows.push_back(std::move(row));
  }
  return ablation;
}

std::string ablation_text(const Ablation& ablation) {
  std::size_t width = 7;
  for (const auto& row : ablation.rows) width = std::max(width, printable(row.label, 60).size());
  const auto padded = [width](std::string text) { return text.append(width - text.size(), ' '); };
  std::string out = padded("variant") +
                    "  parameters  FLOP/step  tokens/s        speed ratio (95%)"
                    "    train  held out            difference (95%)\n";
  for (const auto& row : ablation.rows) {
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(), "  %10s  %9s  %8.0f  %23s  %7.4f  %8.4f  %26s\n",
                  human_count(static_cast<double>(row.size.parameters)).c_str(),
                  human_count(row.size.step_flops).c_str(), row.tokens_per_s,
                  row.speed_ratio.n == 0
                      ? "baseline"
                      : with_interval("%.3f (%.3f .. %.3f)", row.speed_ratio).c_str(),
                  row.train_loss, row.heldout_loss,
                  row.heldout_delta.n == 0
                      ? ""
                      : with_interval("%+.4f (%+.4f .. %+.4f)", row.heldout_delta).c_str());
    out += padded(printable(row.label, 60)) + text.data();
  }
  return out;
}

}  // namespace lockstep
