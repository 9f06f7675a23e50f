#include "report/html_surfaces.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/statistics.h"

namespace lockstep {
namespace {

// Sums over documents, for the error of the ratio of two of them.
struct RatioSums {
  double numerator = 0;
  double denominator = 0;
  double nn = 0;
  double nd = 0;
  double dd = 0;
  double n = 0;

  void add(double a, double b) {
    numerator += a;
    denominator += b;
    nn += a * a;
    nd += a * b;
    dd += b * b;
    n += 1;
  }
  [[nodiscard]] double half_width() const {
    if (n < 2 || denominator <= 0) return std::numeric_limits<double>::quiet_NaN();
    const double ratio = numerator / denominator;
    const double squares = std::max(0.0, nn - 2 * ratio * nd + ratio * ratio * dd);
    return t_quantile(0.975, n - 1) * std::sqrt(squares * n / (n - 1)) / denominator;
  }
};

class Lines {
 public:
  void add(const char* group, const std::string& label, const char* unit, std::int64_t step,
           const Measured& measured) {
    if (!std::isfinite(measured.value)) return;
    const auto found = std::find_if(lines_.begin(), lines_.end(), [&](const SurfaceLine& line) {
      return line.group == group && line.label == label;
    });
    SurfaceLine& line = found != lines_.end() ? *found : lines_.emplace_back();
    line.group = group;
    line.label = label;
    line.unit = unit;
    line.steps.push_back(step);
    line.values.push_back(measured);
  }
  std::vector<SurfaceLine> take() { return std::move(lines_); }

 private:
  std::vector<SurfaceLine> lines_;
};

void add_heldout(const HeldoutSurface& heldout, std::int64_t step, Lines& lines) {
  std::map<std::string, RatioSums> sums;
  for (const auto& document : heldout.by_document) {
    sums[document.label].add(document.ce, static_cast<double>(document.targets));
  }
  for (const auto& domain : heldout.domains) {
    lines.add("Held-out loss", domain.label, "nats a token", step,
              {.value = domain.loss, .half_width = sums[domain.label].half_width()});
  }
}

void add_kl(const KlSurface& kl, std::int64_t step, Lines& lines) {
  RatioSums sums;
  for (const auto& document : kl.by_document) {
    sums.add(document.kl, static_cast<double>(document.tokens));
  }
  lines.add("Token KL", "from " + kl.reference, "nats a token", step,
            {.value = kl.mean, .half_width = sums.half_width()});
}

}  // namespace

std::vector<SurfaceLine> surface_lines(const std::map<std::int64_t, Evaluation>& evaluations) {
  Lines lines;
  for (const auto& [step, evaluation] : evaluations) {
    if (evaluation.heldout) add_heldout(*evaluation.heldout, step, lines);
  }
  for (const auto& [step, evaluation] : evaluations) {
    if (!evaluation.tasks) continue;
    for (const auto& task : *evaluation.tasks) {
      lines.add("Tasks", task.name, "accuracy", step,
                {.value = task.acc, .half_width = 1.96 * task.acc_stderr});
    }
  }
  for (const auto& [step, evaluation] : evaluations) {
    if (evaluation.kl) add_kl(*evaluation.kl, step, lines);
  }
  return lines.take();
}

}  // namespace lockstep
