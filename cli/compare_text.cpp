#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "cli/compare_options.h"

namespace lockstep::cli {
namespace {

std::string formatted(const char* format, double value) {
  if (!std::isfinite(value)) return "-";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string padded(const std::string& text, std::size_t width, bool left = false) {
  const std::string space(text.size() < width ? width - text.size() : 0, ' ');
  return left ? text + space : space + text;
}

bool is_kl(const SurfaceResult& result) { return result.surface == "token_kl"; }

std::string statistic(const SurfaceResult& result, double value) {
  return formatted(is_kl(result) ? "%.3g" : "%+.5f", value);
}

std::string interval(const SurfaceResult& result) {
  const auto [low, high] = result.estimate.interval;
  if (!std::isfinite(low) || !std::isfinite(high)) return "-";
  return concat("[", statistic(result, low), ", ", statistic(result, high), "]");
}

std::string shown_name(const SurfaceResult& result) {
  std::string name = printable(result.surface, 34);
  if (!result.label.empty()) name += concat(" (", printable(result.label, 20), ")");
  return (result.detail ? "  " : "") + name;
}

// What a companion has for the same surface at the same checkpoint.
std::string of_companion(const std::optional<Companion>& companion, const CommonStep& at,
                         const SurfaceResult& result) {
  const SurfaceResult* found = companion->find(at.step, result.surface);
  return found == nullptr ? "-" : statistic(*found, found->estimate.value);
}

void say_step(Context& context, const Comparison& comparison, const StepComparison& step) {
  std::size_t width = 10;
  for (const SurfaceResult& each : step.surfaces) {
    width = std::max(width, shown_name(each).size());
  }
  const auto columns = [&](const std::string& name, const std::array<std::string, 6>& cells,
                           const std::string& floor, const std::string& other) {
    std::string line = padded(name, width, true);
    constexpr std::array<std::size_t, 6> kWidths = {10, 10, 11, 24, 10, 8};
    for (std::size_t i = 0; i < cells.size(); ++i) line += padded(cells[i], kWidths[i]);
    if (comparison.floor) line += padded(floor, 11);
    if (comparison.context) line += padded(other, 11);
    return line;
  };
  context.say("");
  context.say(step.at.step == kUnknownStep ? std::string("at a step that neither side tells")
                                           : concat("step ", step.at.step));
  context.say(
      columns("surface", {"A", "B", "A - B", "95% interval", "tolerance", "n"}, "floor", "context"),
      "  verdict");
  for (const SurfaceResult& each : step.surfaces) {
    const std::string line = columns(
        shown_name(each),
        {formatted("%.4f", each.a), formatted("%.4f", each.b), statistic(each, each.estimate.value),
         interval(each), formatted("%.3g", each.tolerance), concat(each.estimate.n)},
        comparison.floor ? of_companion(comparison.floor, step.at, each) : "",
        comparison.context ? of_companion(comparison.context, step.at, each) : "");
    context.say(line, "  ", name_of(each.verdict),
                each.reason.empty() ? "" : concat(": ", each.reason));
    if (each.kl) {
      context.say("  mean KL(B || A) over ", with_commas(each.kl->tokens), " tokens; largest ",
                  formatted("%.3g", each.kl->max), ", same top token ",
                  formatted("%.2f", 100 * each.kl->top1), "%, top five in common ",
                  formatted("%.2f", 100 * each.kl->top5), "%");
    }
  }
}

void say_side(Context& context, const char* letter, const Evidence& side) {
  context.say(letter, ": ", printable(side.path), " (", name_of(side.kind), " ",
              printable(side.name),
              side.precision.empty() ? "" : concat(", trained in ", printable(side.precision)),
              side.producer.empty() ? "" : concat(", by ", printable(side.producer)), ")");
}

void say_curves(Context& context, const CurveDifference& curve) {
  if (curve.common_steps == 0) {
    context.say("training loss: no step is common");
    return;
  }
  context.say("training loss, A - B over ", with_commas(curve.common_steps), " common steps: mean ",
              formatted("%+.3g", curve.mean), ", spread ", formatted("%.3g", curve.spread),
              ", largest ", formatted("%.3g", curve.max_abs), " at step ", curve.max_abs_step);
  context.say("  largest of the first ", kFirstSteps, " steps ",
              formatted("%.3g", curve.first_max_abs), "; worst ", curve.window,
              " steps in a row: ", curve.worst_first, " to ", curve.worst_last, ", mean ",
              formatted("%+.3g", curve.worst_mean));
  if (curve.batches > 0) {
    context.say("  batches equal at ", with_commas(curve.batches - curve.different_batches), " of ",
                with_commas(curve.batches), " steps");
  }
}

}  // namespace

void say_comparison(Context& context, const Comparison& comparison) {
  say_side(context, "A", comparison.a);
  say_side(context, "B", comparison.b);
  if (comparison.floor) context.say("floor: ", printable(comparison.floor->path), " against B");
  if (comparison.context) {
    context.say("context: ", printable(comparison.context->path),
                " against B; shown for scale, decides nothing");
  }
  say_curves(context, comparison.training_loss);
  for (const StepComparison& step : comparison.steps) say_step(context, comparison, step);
  context.say("");
  for (const std::string& note : comparison.notes) context.say("note: ", note);
  context.say("verdict: ", name_of(comparison.verdict),
              comparison.steps.empty() || comparison.steps.back().at.step == kUnknownStep
                  ? ""
                  : concat(" (at step ", comparison.steps.back().at.step, ")"));
}

}  // namespace lockstep::cli
