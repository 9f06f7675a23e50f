#include "report/comparison_json.h"

#include <cmath>

namespace lockstep {
namespace {

OrderedJson number_or_null(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson step_or_null(std::int64_t step) {
  return step == kUnknownStep ? OrderedJson(nullptr) : OrderedJson(step);
}

OrderedJson side_json(const Evidence& side) {
  return {
      {"path", side.path},
      {"name", side.name},
      {"kind", name_of(side.kind)},
      {"precision", side.precision.empty() ? OrderedJson(nullptr) : OrderedJson(side.precision)},
      {"producer", side.producer.empty() ? OrderedJson(nullptr) : OrderedJson(side.producer)}};
}

OrderedJson estimate_json(const SurfaceResult& result) {
  const Interval& interval = result.estimate.interval;
  OrderedJson json;
  json["statistic"] = number_or_null(result.estimate.value);
  json["interval"] =
      OrderedJson::array({number_or_null(interval.low), number_or_null(interval.high)});
  json["n"] = result.estimate.n;
  json["a"] = number_or_null(result.a);
  json["b"] = number_or_null(result.b);
  if (!result.label.empty()) json["label"] = result.label;
  if (result.kl) {
    json["tokens"] = result.kl->tokens;
    json["max"] = number_or_null(result.kl->max);
    json["top1"] = number_or_null(result.kl->top1);
    json["top5"] = number_or_null(result.kl->top5);
  }
  return json;
}

OrderedJson surface_json(const SurfaceResult& result, const CommonStep& at) {
  OrderedJson json;
  json["surface"] = result.surface;
  json["step"] = step_or_null(at.step);
  json["verdict"] = name_of(result.verdict);
  json.update(estimate_json(result));
  json["tolerance"] = result.tolerance;
  json["detail"] = result.detail;
  json["reason"] = result.reason.empty() ? OrderedJson(nullptr) : OrderedJson(result.reason);
  return json;
}

OrderedJson curve_json(const CurveDifference& curve) {
  const bool any = curve.common_steps > 0;
  OrderedJson json;
  json["common_steps"] = curve.common_steps;
  json["only_a"] = curve.only_a;
  json["only_b"] = curve.only_b;
  json["not_finite"] = curve.not_finite;
  json["mean"] = number_or_null(curve.mean);
  json["spread"] = number_or_null(curve.spread);
  json["max_abs"] = number_or_null(curve.max_abs);
  json["max_abs_step"] = any ? OrderedJson(curve.max_abs_step) : OrderedJson(nullptr);
  json["first_50_steps"] = curve.first_steps;
  json["first_50_max_abs"] = number_or_null(curve.first_max_abs);
  json["worst_window"] = any ? OrderedJson({{"steps", curve.window},
                                            {"first", curve.worst_first},
                                            {"last", curve.worst_last},
                                            {"mean", number_or_null(curve.worst_mean)}})
                             : OrderedJson(nullptr);
  json["last_window_a"] = number_or_null(curve.last_a);
  json["last_window_b"] = number_or_null(curve.last_b);
  json["batches_compared"] = curve.batches;
  json["batches_different"] = curve.different_batches;
  return json;
}

OrderedJson companion_json(const std::optional<Companion>& companion) {
  if (!companion) return nullptr;
  OrderedJson json;
  json["path"] = companion->path;
  json["name"] = companion->name;
  json["surfaces"] = OrderedJson::array();
  for (const StepComparison& step : companion->steps) {
    for (const SurfaceResult& result : step.surfaces) {
      OrderedJson entry;
      entry["surface"] = result.surface;
      entry["step"] = step_or_null(step.at.step);
      entry.update(estimate_json(result));
      json["surfaces"].push_back(std::move(entry));
    }
  }
  return json;
}

}  // namespace

OrderedJson to_json(const Comparison& comparison) {
  OrderedJson json;
  json["verdict"] = name_of(comparison.verdict);
  json["step"] = comparison.steps.empty() ? OrderedJson(nullptr)
                                          : step_or_null(comparison.steps.back().at.step);
  json["a"] = side_json(comparison.a);
  json["b"] = side_json(comparison.b);
  json["training_loss"] = curve_json(comparison.training_loss);
  json["surfaces"] = OrderedJson::array();
  for (const StepComparison& step : comparison.steps) {
    for (const SurfaceResult& result : step.surfaces) {
      json["surfaces"].push_back(surface_json(result, step.at));
    }
  }
  json["floor"] = companion_json(comparison.floor);
  json["context"] = companion_json(comparison.context);
  json["tolerances"] = comparison.tolerances;
  json["notes"] = comparison.notes;
  return json;
}

}  // namespace lockstep
