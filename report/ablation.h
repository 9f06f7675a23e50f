#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "eval/heldout.h"
#include "io/file.h"
#include "report/evidence.h"
#include "report/statistics.h"
#include "train/ablation.h"

// What an ablation (train/ablation.h) found: each variant beside the first, the baseline.
namespace lockstep {

// A variant with what was measured of it.
struct MeasuredVariant {
  Variant variant;
  std::vector<CurvePoint> curve;  // of its run
  HeldoutReport heldout;          // of its last checkpoint; without documents: not evaluated
};

struct AblationRow {
  std::string label;
  std::string directory;
  VariantSize size;
  double step_seconds = 0;  // median over all steps but the first of each block
  double tokens_per_s = 0;  // at that
  double train_loss = 0;    // of the last step
  double heldout_loss = 0;  // mean over all targets; NaN: not evaluated
  // Against the baseline; NaN for the baseline itself.
  Estimate speed_ratio;    // above 1: faster; n counts pairs of blocks
  Estimate heldout_delta;  // nats a target, below 0: better; n counts documents
};

struct Ablation {
  std::int64_t steps = 0;
  std::int64_t tokens = 0;
  std::int64_t block = 0;
  std::vector<AblationRow> rows;
};

// The median of values and an interval that covers the median of what they were drawn from with at
// least 95%: order statistics by the binomial distribution (David and Nagaraja 2003, "Order
// Statistics", section 7.1), so whatever the distribution is. With fewer than six values the
// interval cannot be had: their whole range is given.
[[nodiscard]] Estimate median_with_interval(std::vector<double> values);

// Median seconds of a step in each block of `block` steps, from step 1; the first step of a block
// is left out (cold caches and fresh memory) where the block has others. NaN: a block without any.
[[nodiscard]] std::vector<double> block_seconds(std::span<const CurvePoint> curve,
                                                std::int64_t block);

// Compares every variant with the first: the median of the ratios of paired blocks' seconds, and
// the difference of held-out losses by the paired bootstrap over documents. kData
// naming the first step at which two runs saw different batches, or when they were evaluated on
// different documents.
[[nodiscard]] Ablation summarise(std::span<const MeasuredVariant> variants, std::int64_t block,
                                 ThreadPool& pool);

// The table for people.
[[nodiscard]] std::string ablation_text(const Ablation& ablation);

}  // namespace lockstep
