#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/instance_source.h"
#include "eval/evaluation_file.h"
#include "eval/logit_distance.h"
#include "eval/parity.h"
#include "model/model.h"

namespace lockstep {

// Token-level KL(reference || model): every position of a text but none beyond its end, by fp64
// softmaxes over the real ids (MaxText, tests/utils/forward_pass_logit_checker.py). Percentiles
// are those of all positions, linear between neighbours in order; buckets are [0, 1), [1, 2),
// [2, 4), [4, 8)... by position in the text.
class KlTally {
 public:
  // Positions of a document follow each other; documents come in the order of the result.
  void add(std::int64_t document, std::int64_t position, const LogitDistance& distance);
  // `reference` stays empty, `vocab` 0. All NaN when nothing was added.
  [[nodiscard]] KlSurface finish() const;

 private:
  std::vector<double> kl_;
  std::vector<KlSurface::Bucket> buckets_;  // `mean` holds the sum
  std::vector<KlSurface::Document> documents_;
  double same_top_ = 0;
  double top5_ = 0;
};

struct KlOptions {
  std::int64_t max_tokens = 0;  // whole documents, one of each label in turn, until reached; 0: all
  std::function<void(std::int64_t done, std::int64_t all)> progress = {};  // tokens; may be empty
  std::function<bool()> stopping = {};                                     // may be empty
};

// Over documents of the source, each run on its own: bits depend on nothing but weights, tokens and
// which documents there are. Logits are held for a few rows at a time. Throws kInput when the two
// models differ in vocabulary. When ended early, of the documents done so far.
[[nodiscard]] KlSurface measure_token_kl(Model& model, Model& reference,
                                         const InstanceSource& source, CpuStream& stream,
                                         const KlOptions& options);

// Against stored logits, whose sequences count as documents. kInput when they are fewer columns
// than the model has ids, or more than it has rows.
[[nodiscard]] KlSurface measure_token_kl(Model& model, const Reference& stored, CpuStream& stream);

}  // namespace lockstep
