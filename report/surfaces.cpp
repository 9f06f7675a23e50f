#include "report/surfaces.h"

#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "report/surface_rules.h"

namespace lockstep {

SurfaceResult no_data(const std::string& surface, double tolerance, const std::string& reason) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  SurfaceResult result;
  result.surface = surface;
  result.detail = surface.find('/') != std::string::npos;
  result.estimate = {.value = kNone, .interval = {kNone, kNone}, .n = 0};
  result.tolerance = tolerance;
  result.reason = reason;
  result.a = result.b = kNone;
  return result;
}

void decide(SurfaceResult& result, std::int64_t minimum, std::string_view unit) {
  result.verdict = judge(result.estimate, result.tolerance, minimum);
  if (result.verdict != Verdict::kNotEnoughData) return;
  if (result.estimate.n < minimum) {
    result.reason =
        concat("rests on ", result.estimate.n, " ", unit, ", wanted ", minimum, " or more");
  } else {
    result.reason = "the interval reaches across the tolerance";
  }
}

SurfaceResult judge_kl(const KlSurface& kl, double tolerance, const SurfaceOptions& options,
                       ThreadPool& pool) {
  SurfaceResult result = no_data("token_kl", tolerance, "");
  std::vector<RatioTerm> terms;
  for (const auto& document : kl.by_document) {
    if (document.tokens > 0) terms.push_back({document.kl, static_cast<double>(document.tokens)});
  }
  result.estimate = bootstrap_ratio(terms, options.bootstrap, pool);
  if (terms.empty()) result.estimate.value = kl.mean;
  decide(result, kMinDocuments, "documents");
  result.kl = kl;
  result.kl->by_document.clear();
  return result;
}

}  // namespace lockstep
