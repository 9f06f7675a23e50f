#include "report/html_verdict.h"

#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "report/html_table.h"
#include "report/html_text.h"
#include "report/run_diff.h"

namespace lockstep {
namespace {

constexpr const char* kNumber = "number";

const char* class_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return "good";
    case Verdict::kDiffers:
      return "bad";
    case Verdict::kNotEnoughData:
      break;
  }
  return "unsure";
}

std::string surface_name(const SurfaceResult& result) {
  return result.label.empty() ? result.surface : concat(result.surface, " (", result.label, ")");
}

std::string surface_table(const Comparison& comparison, const StepComparison& step) {
  std::vector<std::string> headers = {"Surface",         "Verdict",    comparison.a.name,
                                      comparison.b.name, "Difference", "95% interval",
                                      "Tolerance",       "Items"};
  if (comparison.floor) headers.emplace_back("Floor");
  if (comparison.context) headers.emplace_back("Context");
  headers.emplace_back("Why");
  HtmlTable table(step.at.step == kUnknownStep
                      ? std::string("Surfaces")
                      : concat("Surfaces at step ", with_commas(step.at.step)),
                  headers);
  for (const SurfaceResult& result : step.surfaces) {
    const Estimate& estimate = result.estimate;
    std::vector<HtmlTable::Cell> cells = {
        {surface_name(result), result.detail ? "detail" : ""},
        {std::string(name_of(result.verdict)), class_of(result.verdict)},
        {html_number(result.a), kNumber},
        {html_number(result.b), kNumber},
        {html_number(estimate.value, 3), kNumber},
        {std::isfinite(estimate.interval.low)
             ? concat(html_number(estimate.interval.low, 3), " to ",
                      html_number(estimate.interval.high, 3))
             : "–",
         kNumber},
        {html_number(result.tolerance, 3), kNumber},
        {with_commas(estimate.n), kNumber}};
    for (const auto* companion : {&comparison.floor, &comparison.context}) {
      if (!*companion) continue;
      const SurfaceResult* found = (*companion)->find(step.at.step, result.surface);
      cells.push_back({found == nullptr ? "–" : html_number(found->estimate.value, 3), kNumber});
    }
    cells.push_back({result.reason, "wide"});
    table.row(cells);
  }
  return table.html();
}

std::string training_loss_html(const CurveDifference& curve) {
  if (curve.common_steps == 0) return "<p>No step was logged by both.</p>\n";
  std::string text = concat(
      "Training loss over ", with_commas(curve.common_steps), " common steps: mean difference ",
      html_number(curve.mean, 3), ", spread ", html_number(curve.spread, 3), ", largest ",
      html_number(curve.max_abs, 3), " at step ", with_commas(curve.max_abs_step),
      "; worst window of ", curve.window, " steps: mean ", html_number(curve.worst_mean, 3),
      " (steps ", with_commas(curve.worst_first), " to ", with_commas(curve.worst_last), ").");
  if (curve.batches > 0) {
    text += concat(" Batches of ", with_commas(curve.batches), " steps compared: ",
                   curve.different_batches == 0 ? std::string("all the same")
                                                : with_commas(curve.different_batches) + " differ",
                   ".");
  }
  return "<p>" + html_escape(text) + "</p>\n";
}

// What a column of the table stands for.
std::string companion_html(const char* word, const std::optional<Companion>& companion,
                           const std::string& reference) {
  if (!companion) return {};
  return concat("<p>", word, ": the difference of ", html_escape(companion->name), " from ",
                html_escape(reference), ".</p>\n");
}

}  // namespace

std::string verdict_html(std::span<const Comparison> comparisons) {
  std::string html;
  for (const Comparison& comparison : comparisons) {
    html += concat("<p class=\"verdict ", class_of(comparison.verdict), "\"><strong>",
                   html_escape(name_of(comparison.verdict)), "</strong> ",
                   html_escape(comparison.a.name), " against ", html_escape(comparison.b.name),
                   "</p>\n", training_loss_html(comparison.training_loss),
                   companion_html("Floor", comparison.floor, comparison.b.name),
                   companion_html("Context", comparison.context, comparison.b.name));
    if (comparison.steps.empty()) {
      html += "<p>No checkpoint was evaluated on both sides.</p>\n";
    } else {
      html += surface_table(comparison, comparison.steps.back());
    }
    if (comparison.steps.size() > 1) {
      html += "<details><summary>Earlier checkpoints</summary>\n";
      for (std::size_t i = comparison.steps.size() - 1; i-- > 0;) {
        html += surface_table(comparison, comparison.steps[i]);
      }
      html += "</details>\n";
    }
    if (comparison.notes.empty()) continue;
    html += "<ul>\n";
    for (const auto& note : comparison.notes) html += "<li>" + html_escape(note) + "</li>\n";
    html += "</ul>\n";
  }
  return html.empty() ? "<p>One run: nothing compared.</p>\n" : html;
}

std::string recipe_difference_html(const Evidence& a, const Evidence& b) {
  const RunDiff diff = diff_runs(a, b);
  if (!diff.recipes_compared) return {};
  if (diff.recipe.empty()) {
    return concat("<p>", html_escape(a.name), " and ", html_escape(b.name),
                  " have the same recipe.</p>\n");
  }
  HtmlTable table(concat("Recipe keys that differ between ", a.name, " and ", b.name),
                  {"Key", a.name, b.name, "Bears on the result"});
  for (const auto& each : diff.recipe) {
    table.row(
        {{each.path}, {each.before, "wide"}, {each.after, "wide"}, {each.benign ? "no" : "yes"}});
  }
  return table.html();
}

}  // namespace lockstep
