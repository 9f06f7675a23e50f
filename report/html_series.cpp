#include "report/html_series.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace lockstep {

StepSeries::StepSeries(std::size_t columns, std::size_t capacity)
    : columns_(columns), capacity_(capacity) {
  LOCKSTEP_CHECK(capacity >= 2, "a series of ", capacity, " buckets");
}

void StepSeries::clear() {
  width_ = 1;
  last_step_ = -1;
  buckets_.clear();
  cells_.clear();
}

void StepSeries::merge(Cell& into, const Cell& from) {
  into.sum += from.sum;
  into.count += from.count;
  into.min = std::min(into.min, from.min);
  into.max = std::max(into.max, from.max);
}

void StepSeries::add(std::int64_t step, std::span<const double> values) {
  LOCKSTEP_CHECK(values.size() == columns_, values.size(), " values of ", columns_);
  LOCKSTEP_CHECK(step > last_step_, "step ", step, " after ", last_step_);
  last_step_ = step;
  if (buckets_.empty() || buckets_.back().key != step / width_) {
    if (buckets_.size() == capacity_) halve();
  }
  if (buckets_.empty() || buckets_.back().key != step / width_) {
    buckets_.push_back({.key = step / width_, .last_step = step});
    cells_.resize(buckets_.size() * columns_);
  }
  buckets_.back().last_step = step;
  for (std::size_t column = 0; column < columns_; ++column) {
    const double value = values[column];
    if (!std::isfinite(value)) continue;
    merge(cells_[(buckets_.size() - 1) * columns_ + column],
          {.sum = value, .count = 1, .min = value, .max = value});
  }
}

// Doubles the width until there is room for one more bucket.
void StepSeries::halve() {
  while (buckets_.size() == capacity_) {
    width_ *= 2;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const Bucket bucket{.key = buckets_[i].key / 2, .last_step = buckets_[i].last_step};
      const bool joins = kept > 0 && buckets_[kept - 1].key == bucket.key;
      const std::size_t target = joins ? kept - 1 : kept++;
      buckets_[target] = bucket;
      for (std::size_t column = 0; column < columns_; ++column) {
        const Cell cell = cells_[i * columns_ + column];
        Cell& into = cells_[target * columns_ + column];
        if (joins) {
          merge(into, cell);
        } else {
          into = cell;
        }
      }
    }
    buckets_.resize(kept);
    cells_.resize(kept * columns_);
  }
}

StepSeries::Value StepSeries::value(std::size_t i, std::size_t column) const {
  const Cell& cell = cells_[i * columns_ + column];
  if (cell.count == 0) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return {.mean = kNone, .min = kNone, .max = kNone};
  }
  return {.mean = cell.sum / static_cast<double>(cell.count), .min = cell.min, .max = cell.max};
}

std::size_t StepSeries::first_changed_since(std::int64_t step) const {
  const auto first = std::lower_bound(
      buckets_.begin(), buckets_.end(), step,
      [](const Bucket& bucket, std::int64_t wanted) { return bucket.last_step <= wanted; });
  return static_cast<std::size_t>(first - buckets_.begin());
}

}  // namespace lockstep
