#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// Several numbers by step, kept in bounded memory: while there are few steps each is kept as it
// is; then neighbours are put together, in buckets of 2, 4, 8, ... steps that hold the mean, the
// smallest and the largest of each column. Which steps share a bucket depends on the steps alone,
// never on when or in how many pieces they came. Not thread-safe.
class StepSeries {
 public:
  // `capacity`: most buckets, at least 2.
  StepSeries(std::size_t columns, std::size_t capacity);

  // Steps must increase (kBug). `values` has one number a column; one that is not finite counts as
  // absent.
  void add(std::int64_t step, std::span<const double> values);
  void clear();

  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] std::size_t size() const { return buckets_.size(); }
  // Steps a bucket spans: bucket with key k holds steps [k * width, (k + 1) * width).
  [[nodiscard]] std::int64_t width() const { return width_; }
  [[nodiscard]] std::int64_t last_step() const { return last_step_; }  // -1: none

  struct Value {
    double mean = 0;
    double min = 0;
    double max = 0;  // all three NaN when no step of the bucket has a number
  };
  // The last step put into bucket i, and the numbers of its column.
  [[nodiscard]] std::int64_t step(std::size_t i) const { return buckets_[i].last_step; }
  [[nodiscard]] Value value(std::size_t i, std::size_t column) const;
  // The first bucket that holds a step after `step`; those before it are as they were when `step`
  // was the last (unless width() changed since).
  [[nodiscard]] std::size_t first_changed_since(std::int64_t step) const;

 private:
  struct Bucket {
    std::int64_t key = 0;
    std::int64_t last_step = 0;
  };
  struct Cell {
    double sum = 0;
    std::int64_t count = 0;
    double min = std::numeric_limits<double>::infinity();
    double max = -std::numeric_limits<double>::infinity();
  };
  static void merge(Cell& into, const Cell& from);
  void halve();

  std::size_t columns_;
  std::size_t capacity_;
  std::int64_t width_ = 1;
  std::int64_t last_step_ = -1;
  std::vector<Bucket> buckets_;
  std::vector<Cell> cells_;  // columns_ of each bucket
};

}  // namespace lockstep
