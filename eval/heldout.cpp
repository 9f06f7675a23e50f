#include "eval/heldout.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"

namespace lockstep {
namespace {

double ratio(double sum, std::int64_t count) {
  return count == 0 ? std::nan("") : sum / static_cast<double>(count);
}

struct Document {
  std::vector<std::uint32_t> tokens;
  std::size_t result = 0;  // index into the report's documents
};

// Runs documents of similar lengths together, padded behind: a row's bits do not depend on what
// stands behind it or on the other sequences.
class GroupRunner {
 public:
  GroupRunner(Model& model, const HeldoutOptions& options) : model_(model), options_(options) {}

  void run(std::span<const Document> group, std::vector<DocumentLoss>& results) {
    const std::size_t rows = group.size();
    std::size_t length = 0;
    for (const auto& document : group) length = std::max(length, document.tokens.size());
    tokens_.assign(rows * length, 0);
    targets_.assign(rows * length, -1);
    for (std::size_t r = 0; r < rows; ++r) {
      const auto& tokens = group[r].tokens;
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        tokens_[r * length + t] = static_cast<std::int32_t>(tokens[t]);
        if (t > 0) targets_[r * length + t - 1] = static_cast<std::int32_t>(tokens[t]);
      }
    }
    const auto b = static_cast<std::int64_t>(rows);
    const auto t = static_cast<std::int64_t>(length);
    static_cast<void>(model_.forward_loss({.tokens = View(tokens_.data(), DType::kI32, {b, t}),
                                           .targets = View(targets_.data(), DType::kI32, {b, t}),
                                           .segments = {}},
                                          model_.config().vocab_size));
    const float* ce = model_.token_ce().data<float>();
    for (std::size_t r = 0; r < rows; ++r) {
      DocumentLoss& loss = results[group[r].result];
      for (std::size_t i = 0; i + 1 < group[r].tokens.size(); ++i) {
        loss.ce += static_cast<double>(ce[r * length + i]);
        if (!options_.bytes_of_token.empty()) {
          loss.bytes += options_.bytes_of_token[group[r].tokens[i + 1]];
        }
      }
    }
  }

 private:
  Model& model_;
  const HeldoutOptions& options_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> targets_;
};

std::vector<std::uint64_t> chosen_documents(const InstanceSource& source,
                                            std::int64_t max_documents) {
  std::vector<std::uint64_t> chosen;
  std::vector<std::int64_t> taken(source.labels().size(), 0);
  for (std::uint64_t id = 0; id < source.instances(); ++id) {
    auto& count = taken[source.label_of(id)];
    if (max_documents > 0 && count >= max_documents) continue;
    ++count;
    chosen.push_back(id);
  }
  return chosen;
}

void add_up(HeldoutReport& report, const InstanceSource& source) {
  report.domains.resize(source.labels().size());
  for (std::size_t i = 0; i < report.domains.size(); ++i) {
    report.domains[i].label = source.labels()[i];
  }
  for (const auto& document : report.documents) {
    DomainLoss& domain = report.domains[document.label];
    ++domain.documents;
    domain.tokens += document.tokens;
    domain.targets += document.targets;
    domain.bytes += document.bytes;
    domain.ce += document.ce;
  }
}

}  // namespace

double DomainLoss::strict() const { return ratio(ce, targets); }
double DomainLoss::olmo_core() const { return ratio(ce, tokens); }
double DomainLoss::perplexity() const { return std::exp(strict()); }
double DomainLoss::bits_per_byte() const { return ratio(ce / std::numbers::ln2, bytes); }

DomainLoss HeldoutReport::total() const {
  DomainLoss total{.label = "all"};
  for (const auto& domain : domains) {
    total.documents += domain.documents;
    total.tokens += domain.tokens;
    total.targets += domain.targets;
    total.bytes += domain.bytes;
    total.ce += domain.ce;
  }
  return total;
}

HeldoutReport evaluate_heldout(Model& model, const InstanceSource& source,
                               const HeldoutOptions& options) {
  LOCKSTEP_CHECK(options.batch >= 1, "batch ", options.batch);
  const auto chosen = chosen_documents(source, options.max_documents);
  const auto budget = static_cast<std::uint64_t>(options.batch) * source.sequence_length();
  HeldoutReport report;
  report.documents.reserve(chosen.size());
  GroupRunner runner(model, options);
  std::vector<std::uint32_t> tokens(source.sequence_length());
  // Documents are read in chunks, and run by length within a chunk, so that little is padding.
  constexpr std::size_t kChunk = 512;
  for (std::size_t begin = 0; begin < chosen.size(); begin += kChunk) {
    const std::size_t end = std::min(chosen.size(), begin + kChunk);
    std::vector<Document> chunk;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t real = source.read(chosen[i], tokens);
      chunk.push_back({{tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(real)},
                       report.documents.size()});
      report.documents.push_back({.document = chosen[i],
                                  .label = source.label_of(chosen[i]),
                                  .tokens = static_cast<std::int64_t>(real),
                                  .targets = static_cast<std::int64_t>(real) - 1});
    }
    std::stable_sort(chunk.begin(), chunk.end(), [](const Document& a, const Document& b) {
      return a.tokens.size() > b.tokens.size();
    });
    for (std::size_t first = 0; first < chunk.size();) {
      if (options.stopping && options.stopping()) {
        report.documents.resize(begin);  // the chunk is not whole
        add_up(report, source);
        return report;
      }
      const std::size_t rows = std::min(
          chunk.size() - first, std::max<std::size_t>(1, budget / chunk[first].tokens.size()));
      runner.run(std::span(chunk).subspan(first, rows), report.documents);
      first += rows;
      if (options.progress) options.progress(begin + first, chosen.size());
    }
  }
  add_up(report, source);
  return report;
}

}  // namespace lockstep
