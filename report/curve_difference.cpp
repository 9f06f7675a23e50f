#include "report/curve_difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"

namespace lockstep {
namespace {

struct Pair {
  std::int64_t step = 0;
  double a = 0;
  double b = 0;
  [[nodiscard]] double difference() const { return a - b; }
};

// The loss as optimised; a bundle may log the cross-entropy only.
double loss_of(const CurvePoint& point) {
  return std::isnan(point.loss) ? point.ce_loss : point.loss;
}

std::vector<Pair> pair_steps(std::span<const CurvePoint> a, std::span<const CurvePoint> b,
                             CurveDifference& result) {
  std::vector<Pair> pairs;
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() && j != b.end()) {
    if (i->step < j->step) {
      ++result.only_a;
      ++i;
    } else if (j->step < i->step) {
      ++result.only_b;
      ++j;
    } else {
      const Pair pair{i->step, loss_of(*i), loss_of(*j)};
      if (std::isfinite(pair.a) && std::isfinite(pair.b)) {
        pairs.push_back(pair);
      } else {
        ++result.not_finite;
      }
      if (!i->batch_digest.empty() && !j->batch_digest.empty()) {
        ++result.batches;
        if (i->batch_digest != j->batch_digest) ++result.different_batches;
      }
      ++i;
      ++j;
    }
  }
  result.only_a += a.end() - i;
  result.only_b += b.end() - j;
  return pairs;
}

void measure(const std::vector<Pair>& pairs, CurveDifference& result) {
  const auto count = static_cast<double>(pairs.size());
  double sum = 0;
  for (const Pair& pair : pairs) {
    const double distance = std::abs(pair.difference());
    sum += pair.difference();
    if (distance > result.max_abs || result.max_abs_step == 0) {
      result.max_abs = distance;
      result.max_abs_step = pair.step;
    }
    if (pair.step <= kFirstSteps) {
      ++result.first_steps;
      result.first_max_abs = std::max(result.first_max_abs, distance);
    }
  }
  result.mean = sum / count;
  double squares = 0;
  for (const Pair& pair : pairs) {
    const double deviation = pair.difference() - result.mean;
    squares += deviation * deviation;
  }
  result.spread = pairs.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
}

// Each window is summed anew: a running sum would carry its rounding on.
void find_worst_window(const std::vector<Pair>& pairs, std::int64_t window,
                       CurveDifference& result) {
  result.window = std::min(window, std::ssize(pairs));
  const auto size = static_cast<std::size_t>(result.window);
  const auto width = static_cast<double>(size);
  for (std::size_t first = 0; first + size <= pairs.size(); ++first) {
    double a = 0;
    double b = 0;
    double difference = 0;
    for (std::size_t i = first; i < first + size; ++i) {
      a += pairs[i].a;
      b += pairs[i].b;
      difference += pairs[i].difference();
    }
    if (first == 0 || std::abs(difference / width) > std::abs(result.worst_mean)) {
      result.worst_mean = difference / width;
      result.worst_first = pairs[first].step;
      result.worst_last = pairs[first + size - 1].step;
    }
    result.last_a = a / width;
    result.last_b = b / width;
  }
}

}  // namespace

CurveDifference compare_curves(std::span<const CurvePoint> a, std::span<const CurvePoint> b,
                               std::int64_t window) {
  LOCKSTEP_CHECK(window >= 1, window);
  CurveDifference result;
  const std::vector<Pair> pairs = pair_steps(a, b, result);
  result.common_steps = std::ssize(pairs);
  if (pairs.empty()) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    result.mean = result.spread = result.max_abs = result.first_max_abs = none;
    result.worst_mean = result.last_a = result.last_b = none;
    return result;
  }
  measure(pairs, result);
  find_worst_window(pairs, window, result);
  if (result.first_steps == 0) result.first_max_abs = std::numeric_limits<double>::quiet_NaN();
  return result;
}

}  // namespace lockstep
