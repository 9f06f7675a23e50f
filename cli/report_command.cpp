#include <algorithm>
#include <cmath>
#include <memory>

#include "base/text.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "report/ablation_file.h"
#include "report/html_page.h"
#include "report/html_text.h"
#include "report/run_diff.h"

namespace lockstep::cli {
namespace {

struct ReportCommand {
  std::vector<std::string> runs;
  std::string output;
  bool diff = false;
  ReportOptions report;
};

constexpr std::size_t kDiffRows = 16;  // of losses that --diff prints

// Evenly spaced steps that both logged, the first and the last among them.
std::vector<std::pair<CurvePoint, CurvePoint>> common_points(const Evidence& a, const Evidence& b) {
  std::vector<std::pair<CurvePoint, CurvePoint>> common;
  auto other = b.curve.begin();
  for (const CurvePoint& point : a.curve) {
    while (other != b.curve.end() && other->step < point.step) ++other;
    if (other != b.curve.end() && other->step == point.step) common.emplace_back(point, *other);
  }
  if (common.size() <= kDiffRows) return common;
  std::vector<std::pair<CurvePoint, CurvePoint>> some;
  for (std::size_t i = 0; i < kDiffRows; ++i) {
    some.push_back(common[i * (common.size() - 1) / (kDiffRows - 1)]);
  }
  return some;
}

OrderedJson number_or_null(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson diff_json(const Evidence& a, const Evidence& b, const RunDiff& diff) {
  OrderedJson json;
  json["a"] = a.path;
  json["b"] = b.path;
  json["recipes_compared"] = diff.recipes_compared;
  json["recipe"] = OrderedJson::array();
  for (const auto& each : diff.recipe) {
    json["recipe"].push_back(
        {{"key", each.path}, {"a", each.before}, {"b", each.after}, {"benign", each.benign}});
  }
  const CurveDifference& curve = diff.curve;
  json["training_loss"] = {{"common_steps", curve.common_steps},
                           {"mean", number_or_null(curve.mean)},
                           {"spread", number_or_null(curve.spread)},
                           {"max_abs", number_or_null(curve.max_abs)},
                           {"max_abs_step", curve.max_abs_step},
                           {"window", curve.window},
                           {"worst_mean", number_or_null(curve.worst_mean)},
                           {"worst_first", curve.worst_first},
                           {"worst_last", curve.worst_last},
                           {"batches", curve.batches},
                           {"different_batches", curve.different_batches}};
  json["points"] = OrderedJson::array();
  for (const auto& [mine, theirs] : common_points(a, b)) {
    json["points"].push_back({{"step", mine.step},
                              {"a", number_or_null(mine.loss)},
                              {"b", number_or_null(theirs.loss)}});
  }
  return json;
}

void say_diff(Context& context, const Evidence& a, const Evidence& b, const RunDiff& diff) {
  context.say("A: ", printable(a.path), " (", name_of(a.kind), " ", printable(a.name), ")");
  context.say("B: ", printable(b.path), " (", name_of(b.kind), " ", printable(b.name), ")");
  if (!diff.recipes_compared) {
    context.say("recipes: not compared, not both are runs");
  } else if (diff.recipe.empty()) {
    context.say("recipes: the same");
  }
  for (const auto& each : diff.recipe) {
    context.say("  ", each.path, ": ", printable(each.before), " -> ", printable(each.after),
                each.benign ? "  (does not bear on the result)" : "");
  }
  const CurveDifference& curve = diff.curve;
  if (curve.common_steps == 0) {
    context.say("training loss: no step was logged by both");
    return;
  }
  context.say("training loss, A less B over ", with_commas(curve.common_steps),
              " common steps: mean ", html_number(curve.mean, 3), ", spread ",
              html_number(curve.spread, 3), ", largest ", html_number(curve.max_abs, 3),
              " at step ", with_commas(curve.max_abs_step), ", worst ", curve.window,
              " steps: mean ", html_number(curve.worst_mean, 3), " (steps ",
              with_commas(curve.worst_first), " to ", with_commas(curve.worst_last), ")");
  if (curve.batches > 0) {
    context.say("batches: ", with_commas(curve.different_batches), " of ",
                with_commas(curve.batches), " differ");
  }
  std::array<char, 96> row{};
  context.say("      step          A          B   A less B");
  for (const auto& [mine, theirs] : common_points(a, b)) {
    std::snprintf(row.data(), row.size(), "%10lld %10.5f %10.5f %10.2e",
                  static_cast<long long>(mine.step), mine.loss, theirs.loss,
                  mine.loss - theirs.loss);
    context.say(row.data());
  }
}

// An ablation's directory stands for its variants, named by what they vary.
std::vector<Evidence> load_variants(FileSystem& fs, const std::string& directory,
                                    const AblationFile& file) {
  std::vector<Evidence> variants;
  for (const AblationRow& row : file.ablation.rows) {
    const std::string name = row.directory.substr(row.directory.find_last_of('/') + 1);
    variants.push_back(load_evidence(fs, join_path(directory, name)));
    variants.back().name = row.label;
  }
  return variants;
}

std::string output_of(FileSystem& fs, const ReportCommand& options,
                      const std::vector<Evidence>& evidence) {
  if (fs.is_directory(options.output)) {
    fail(ErrorKind::kConfig, "report: -o ", printable(options.output),
         " is a directory; name the HTML file to write");
  }
  if (!options.output.empty() || options.diff) return options.output;
  if (evidence.size() == 1 && evidence.front().kind == EvidenceKind::kRun) {
    return join_path(evidence.front().path, "report.html");
  }
  fail(ErrorKind::kConfig, "report: name the file to write with -o FILE.html");
}

int run_report(Context& context, const ReportCommand& options) {
  FileSystem& fs = FileSystem::real();
  if (options.diff && options.runs.size() != 2) {
    fail(ErrorKind::kConfig, "report --diff: wants two runs, found ", options.runs.size());
  }
  std::vector<Evidence> evidence;
  ReportOptions report = options.report;
  for (const auto& path : options.runs) {
    context.progress("reading " + printable(path));
    const std::string ablation = join_path(path, kAblationFile);
    if (!fs.exists(ablation)) {
      evidence.push_back(load_evidence(fs, path));
      continue;
    }
    report.ablations.push_back(read_ablation(fs, ablation));
    for (auto& each : load_variants(fs, path, report.ablations.back())) {
      evidence.push_back(std::move(each));
    }
  }
  context.end_progress();
  const std::string output = output_of(fs, options, evidence);
  OrderedJson document;
  if (options.diff) {
    const RunDiff diff = diff_runs(evidence[0], evidence[1]);
    document = diff_json(evidence[0], evidence[1], diff);
    say_diff(context, evidence[0], evidence[1], diff);
  }
  if (!output.empty()) {
    ThreadPool pool(ThreadPool::available_cpus());
    report.progress = [&](const std::string& text) { context.progress(printable(text)); };
    context.progress("comparing");
    const std::vector<Comparison> comparisons = compare_first(fs, evidence, {}, pool);
    const std::string html = make_report(fs, evidence, comparisons, report);
    write_file_atomic(fs, output, std::string_view(html));
    context.end_progress();
    document["report"] = output;
    document["bytes"] = html.size();
    document["verdicts"] = OrderedJson::array();
    for (const Comparison& each : comparisons) {
      document["verdicts"].push_back(
          {{"a", each.a.path}, {"b", each.b.path}, {"verdict", name_of(each.verdict)}});
      context.say(printable(each.a.name), " against ", printable(each.b.name), ": ",
                  name_of(each.verdict));
    }
    context.say("wrote ", printable(output), ", ", human_bytes(html.size()));
  }
  context.result(document);
  return 0;
}

}  // namespace

void add_report_command(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ReportCommand>();
  CLI::App* command =
      context.add(app, "report",
                  "Writes one HTML file that shows runs, bundles and models, the first compared "
                  "with each other one",
                  [&context, options] { return run_report(context, *options); });
  command
      ->add_option("RUN", options->runs,
                   "Runs, reference bundles, Hugging Face directories; an ablation's directory "
                   "stands for its variants")
      ->required();
  command->add_option("-o,--output", options->output,
                      "The HTML file; default: report.html in the run, when there is one run");
  command->add_flag("--diff", options->diff,
                    "Prints how the recipes and training losses of two runs differ");
  command
      ->add_option("--audit-batches", options->report.audit_batches,
                   "Batches of each run that are read again and compared with the log; 0: none")
      ->capture_default_str();
}

}  // namespace lockstep::cli
