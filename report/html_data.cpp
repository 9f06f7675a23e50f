#include "report/html_data.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <functional>

#include "base/error.h"
#include "base/json.h"
#include "report/html_surfaces.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostMarks = 1000;  // of each kind, the newest

std::string json_text(const std::string& text) {
  return OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.7g", value);
  return text.data();
}

template <class Text>
std::string json_list(std::size_t first, std::size_t last, const Text& text) {
  std::string out = "[";
  for (std::size_t i = first; i < last; ++i) {
    if (i > first) out += ',';
    out += text(i);
  }
  return out + "]";
}

// Empty when no step has a number in the column.
std::string column_json(const StepSeries& series, std::size_t column, std::size_t first) {
  bool any = false;
  for (std::size_t i = first; i < series.size() && !any; ++i) {
    any = std::isfinite(series.value(i, column).mean);
  }
  if (!any) return {};
  const auto list = [&](double StepSeries::Value::*part) {
    return json_list(first, series.size(),
                     [&](std::size_t i) { return json_number(series.value(i, column).*part); });
  };
  std::string out = R"({"mean":)" + list(&StepSeries::Value::mean);
  if (series.width() > 1) {
    out += R"(,"min":)" + list(&StepSeries::Value::min);
    out += R"(,"max":)" + list(&StepSeries::Value::max);
  }
  return out + "}";
}

std::string steps_json(const StepSeries& series, std::size_t first) {
  return concat(R"("width":)", series.width(), R"(,"step":)",
                json_list(first, series.size(),
                          [&](std::size_t i) { return std::to_string(series.step(i)); }));
}

std::string surface_json(const SurfaceLine& line) {
  const auto list = [&](const std::function<double(const Measured&)>& part) {
    return json_list(0, line.values.size(),
                     [&](std::size_t i) { return json_number(part(line.values[i])); });
  };
  return concat(
      R"({"group":)", json_text(line.group), R"(,"label":)", json_text(line.label), R"(,"unit":)",
      json_text(line.unit), R"(,"step":)",
      json_list(0, line.steps.size(), [&](std::size_t i) { return std::to_string(line.steps[i]); }),
      R"(,"value":)", list([](const Measured& m) { return m.value; }), R"(,"error":)",
      list([](const Measured& m) { return m.half_width; }), "}");
}

}  // namespace

LossDifference loss_difference(std::size_t run, std::span<const CurvePoint> first,
                               std::span<const CurvePoint> curve, std::size_t capacity) {
  LossDifference difference{.run = run, .series = StepSeries(1, capacity)};
  std::size_t i = 0;
  for (const CurvePoint& point : curve) {
    while (i < first.size() && first[i].step < point.step) ++i;
    if (i == first.size()) break;
    if (first[i].step != point.step) continue;
    const std::array<double, 1> value = {first[i].loss - point.loss};
    difference.series.add(point.step, value);
  }
  return difference;
}

std::string curve_json(const RunPage& run, std::size_t first) {
  std::string columns;
  for (std::size_t column = 0; column < kRunColumns; ++column) {
    const std::string text = column_json(run.series, column, first);
    if (text.empty()) continue;
    columns += concat(columns.empty() ? "" : ",", '"', metrics_key(static_cast<RunColumn>(column)),
                      "\":", text);
  }
  return concat(steps_json(run.series, first), R"(,"columns":{)", columns, "}");
}

std::string marks_json(const RunPage& run) {
  std::string marks;
  const auto mark = [&](const char* kind, std::int64_t step, const std::string& text) {
    marks += concat(marks.empty() ? "" : ",", R"({"kind":")", kind, R"(","step":)", step,
                    R"(,"text":)", json_text(text), "}");
  };
  const auto& saves = run.saves.empty() ? run.checkpoints : run.saves;
  for (std::size_t i = saves.size() > kMostMarks ? saves.size() - kMostMarks : 0; i < saves.size();
       ++i) {
    mark("save", saves[i], "");
  }
  for (const RunEvent& event : run.events) {
    if (event.event == "resume" || event.event == "fork") {
      mark(event.event.c_str(), event.step, event.text);
    }
  }
  const auto lines = surface_lines(run.evaluations);
  return concat(R"("marks":[)", marks, R"(],"surfaces":)",
                json_list(0, lines.size(), [&](std::size_t i) { return surface_json(lines[i]); }));
}

std::string chart_json(std::span<const RunPage* const> runs,
                       std::span<const LossDifference> differences) {
  return concat(R"({"runs":)",
                json_list(0, runs.size(),
                          [&](std::size_t i) {
                            return concat(R"({"name":)", json_text(runs[i]->name), ",",
                                          curve_json(*runs[i], 0), ",", marks_json(*runs[i]), "}");
                          }),
                R"(,"differences":)",
                json_list(0, differences.size(),
                          [&](std::size_t i) {
                            const LossDifference& each = differences[i];
                            const std::string column = column_json(each.series, 0, 0);
                            return concat(R"({"run":)", each.run, ",", steps_json(each.series, 0),
                                          R"(,"columns":{)",
                                          column.empty() ? "" : R"("loss":)" + column, "}}");
                          }),
                "}");
}

}  // namespace lockstep
