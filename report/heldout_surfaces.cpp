#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "report/surface_rules.h"
#include "report/surfaces.h"

namespace lockstep {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct PairedDocument {
  double ce_a = 0;
  double ce_b = 0;
  double targets = 0;
};
using ByLabel = std::map<std::string, std::vector<PairedDocument>>;
using Documents = std::map<std::pair<std::string, std::int64_t>, const HeldoutSurface::Document*>;

Documents index_documents(const HeldoutSurface& surface, std::string_view side) {
  Documents documents;
  for (const auto& document : surface.by_document) {
    if (!documents.emplace(std::pair{document.label, document.document}, &document).second) {
      fail(ErrorKind::kData, side, "'s evaluation: document ", document.document, " of ",
           printable(document.label), " is listed twice");
    }
  }
  return documents;
}

void tell(std::int64_t count, std::string_view what, std::vector<std::string>& notes) {
  if (count > 0) notes.push_back(concat("held-out: ", count, " ", what, " and do not count"));
}

ByLabel pair_documents(const HeldoutSurface& a, const HeldoutSurface& b,
                       std::vector<std::string>& notes) {
  const Documents ours = index_documents(a, "A");
  const Documents theirs = index_documents(b, "B");
  ByLabel paired;
  std::int64_t only_a = 0;
  std::int64_t unequal = 0;
  std::int64_t common = 0;
  for (const auto& [key, document] : ours) {
    const auto found = theirs.find(key);
    if (found == theirs.end()) {
      ++only_a;
      continue;
    }
    ++common;
    if (document->targets != found->second->targets) {
      ++unequal;
    } else if (document->targets > 0) {
      paired[key.first].push_back(
          {document->ce, found->second->ce, static_cast<double>(document->targets)});
    }
  }
  tell(only_a, "documents are in A only", notes);
  tell(std::ssize(theirs) - common, "documents are in B only", notes);
  tell(unequal, "documents have different numbers of targets on the two sides", notes);
  return paired;
}

SurfaceResult judge_losses(const std::string& surface, const std::vector<PairedDocument>& documents,
                           const SurfaceOptions& options, ThreadPool& pool) {
  SurfaceResult result = no_data(surface, options.tolerances.of(surface), "");
  std::vector<RatioTerm> terms;
  double ce_a = 0;
  double ce_b = 0;
  double targets = 0;
  for (const PairedDocument& document : documents) {
    terms.push_back({document.ce_a - document.ce_b, document.targets});
    ce_a += document.ce_a;
    ce_b += document.ce_b;
    targets += document.targets;
  }
  result.estimate = bootstrap_ratio(terms, options.bootstrap, pool);
  if (targets > 0) {
    result.a = ce_a / targets;
    result.b = ce_b / targets;
  }
  decide(result, kMinDocuments, "documents");
  return result;
}

// Without losses by document there is a difference, but nothing to tell how sure it is.
void take_domain_losses(SurfaceResult& result, const HeldoutSurface& a, const HeldoutSurface& b,
                        const std::string& label) {
  const auto loss = [&](const HeldoutSurface& surface) {
    double sum = 0;
    double targets = 0;
    for (const auto& domain : surface.domains) {
      if (!label.empty() && domain.label != label) continue;
      sum += domain.loss * static_cast<double>(domain.targets);
      targets += static_cast<double>(domain.targets);
    }
    return targets > 0 ? sum / targets : kNone;
  };
  if (result.estimate.n > 0) return;
  result.a = loss(a);
  result.b = loss(b);
  result.estimate.value = result.a - result.b;
  result.reason = "no document has a loss on both sides";
}

// Labels of both sides, A's order first.
std::vector<std::string> labels_of(const HeldoutSurface& a, const HeldoutSurface& b) {
  std::vector<std::string> labels;
  for (const HeldoutSurface* surface : {&a, &b}) {
    for (const auto& domain : surface->domains) {
      if (std::find(labels.begin(), labels.end(), domain.label) == labels.end()) {
        labels.push_back(domain.label);
      }
    }
  }
  return labels;
}

// Empty when the label that was asked for is on neither side.
std::string c4_label(const std::vector<std::string>& labels, const std::string& wanted) {
  const auto found = std::find_if(labels.begin(), labels.end(), [&](const std::string& label) {
    return wanted.empty() ? label.find("c4") != std::string::npos : label == wanted;
  });
  if (found != labels.end()) return *found;
  return wanted.empty() && !labels.empty() ? labels.front() : "";
}

std::string missing_side(bool a, bool b, std::string_view what) {
  return concat(a && b ? "A and B have" : (a ? "A has" : "B has"), " no ", what);
}

}  // namespace

std::vector<SurfaceResult> compare_heldout(const HeldoutSurface* a, const HeldoutSurface* b,
                                           const SurfaceOptions& options, ThreadPool& pool,
                                           std::vector<std::string>& notes) {
  if (a == nullptr || b == nullptr) {
    const std::string reason = missing_side(a == nullptr, b == nullptr, "held-out losses");
    return {no_data("c4_loss", options.tolerances.of("c4_loss"), reason),
            no_data("perplexity", options.tolerances.of("perplexity"), reason)};
  }
  if (a->data_fingerprint != b->data_fingerprint) {
    notes.push_back(concat(
        "held-out: the sides name their data differently: ", printable(a->data_fingerprint, 40),
        " and ", printable(b->data_fingerprint, 40),
        "; documents are paired by label, number and length"));
  }
  if (a->sequence_length != b->sequence_length) {
    notes.push_back(concat("held-out: documents are cut at ", a->sequence_length, " tokens in A, ",
                           b->sequence_length, " in B"));
  }
  ByLabel paired = pair_documents(*a, *b, notes);
  const std::vector<std::string> labels = labels_of(*a, *b);
  std::vector<PairedDocument> all;
  for (const auto& [label, documents] : paired) {
    all.insert(all.end(), documents.begin(), documents.end());
  }

  std::vector<SurfaceResult> results;
  const std::string c4 = c4_label(labels, options.c4_label);
  if (c4.empty()) {
    results.push_back(no_data("c4_loss", options.tolerances.of("c4_loss"),
                              concat("no held-out domain ", printable(options.c4_label))));
  } else {
    results.push_back(judge_losses("c4_loss", paired[c4], options, pool));
    take_domain_losses(results.back(), *a, *b, c4);
    results.back().label = c4;
  }
  results.push_back(judge_losses("perplexity", all, options, pool));
  take_domain_losses(results.back(), *a, *b, "");
  for (const std::string& label : labels) {
    results.push_back(judge_losses("perplexity/" + label, paired[label], options, pool));
    take_domain_losses(results.back(), *a, *b, label);
  }
  return results;
}

}  // namespace lockstep
