#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/instance_source.h"
#include "model/model.h"

namespace lockstep {

// Cross-entropy (nats) of one document, summed over its targets: every token but the first.
struct DocumentLoss {
  std::uint64_t document = 0;  // in the source
  std::size_t label = 0;
  std::int64_t tokens = 0;   // real ones
  std::int64_t targets = 0;  // tokens - 1
  std::int64_t bytes = 0;    // of the targets' text; 0 without byte lengths
  double ce = 0;
};

// Sums over the documents of one label.
struct DomainLoss {
  std::string label;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::int64_t targets = 0;
  std::int64_t bytes = 0;
  double ce = 0;

  // Mean over the targets.
  [[nodiscard]] double strict() const;
  // OLMo-core's in-loop evaluation divides by all real positions of a document, the last of which
  // has no target: the same sum over more.
  [[nodiscard]] double olmo_core() const;
  [[nodiscard]] double perplexity() const;     // exp(strict)
  [[nodiscard]] double bits_per_byte() const;  // ce / (ln 2 * bytes); NaN when bytes is 0
};

struct HeldoutReport {
  std::vector<DocumentLoss> documents;  // in the order of the source
  std::vector<DomainLoss> domains;      // in the order of its labels
  [[nodiscard]] DomainLoss total() const;
};

struct HeldoutOptions {
  // Sequences of the source's full length that are run at a time; shorter documents run in larger
  // groups. Memory and speed depend on it, no result does.
  std::int64_t batch = 8;
  std::int64_t max_documents = 0;  // of each label, from its start; 0: all
  // Bytes of text that each id stands for (end-of-text: 0); empty: no bits per byte.
  std::span<const std::int32_t> bytes_of_token;
  std::function<void(std::size_t done, std::size_t all)> progress;  // may be empty
  std::function<bool()> stopping;                                   // may be empty; true ends early
};

// The loss of every document of the source under the model, columns from vocab_size on without
// mass. A document's loss is a function of weights and its tokens alone: every sum is taken in fp64
// in the order of positions, then of documents, so no bit depends on the batch. When ended early
// the report holds the documents done so far.
[[nodiscard]] HeldoutReport evaluate_heldout(Model& model, const InstanceSource& source,
                                             const HeldoutOptions& options);

}  // namespace lockstep
