#include "report/html_sections.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/html_surfaces.h"
#include "report/html_table.h"
#include "report/html_text.h"

namespace lockstep {
namespace {

using Cell = HtmlTable::Cell;

constexpr std::size_t kMostTableSteps = 12;  // of each run and surface
constexpr const char* kNumber = "number";
constexpr const char* kNone = "–";

Cell number(double value, int digits = 5) { return {html_number(value, digits), kNumber}; }
Cell integer(std::int64_t value) { return {with_commas(value), kNumber}; }

std::string with_error(const Measured& measured) {
  if (!std::isfinite(measured.half_width)) return html_number(measured.value);
  return concat(html_number(measured.value), " ± ", html_number(measured.half_width, 2));
}

// Of an ablation's row against the first one.
std::string with_interval(const Estimate& estimate, int digits) {
  if (estimate.n == 0) return kNone;
  return concat(html_number(estimate.value, digits), " (",
                html_number(estimate.interval.low, digits), " to ",
                html_number(estimate.interval.high, digits), ")");
}

// The data of one surface chart: each run's line of that group and label, if it has one.
struct ChartSurface {
  std::string group;
  std::string label;
  std::string unit;
  std::map<std::size_t, SurfaceLine> by_run;
};

std::vector<ChartSurface> surfaces_of(RunPages runs) {
  std::vector<ChartSurface> all;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (auto& line : surface_lines(runs[run]->evaluations)) {
      const auto found = std::find_if(all.begin(), all.end(), [&](const ChartSurface& surface) {
        return surface.group == line.group && surface.label == line.label;
      });
      ChartSurface& surface = found != all.end() ? *found : all.emplace_back();
      surface.group = line.group;
      surface.label = line.label;
      surface.unit = line.unit;
      surface.by_run.emplace(run, std::move(line));
    }
  }
  return all;
}

std::string kl_details_html(RunPages runs) {
  HtmlTable spread("Token KL by percentile, nats a token",
                   {"Run", "Step", "Against", "Mean", "50%", "90%", "99%", "99.9%", "Largest",
                    "Same top token", "Same top five"});
  HtmlTable buckets("Token KL by position, newest evaluation, nats a token",
                    {"Run", "Step", "Positions", "Tokens", "Mean"});
  for (const RunPage* run : runs) {
    const auto newest = std::find_if(run->evaluations.rbegin(), run->evaluations.rend(),
                                     [](const auto& each) { return each.second.kl.has_value(); });
    if (newest == run->evaluations.rend()) continue;
    const KlSurface& kl = *newest->second.kl;
    spread.row({{run->name},
                integer(newest->first),
                {kl.reference},
                number(kl.mean, 4),
                number(kl.p50, 4),
                number(kl.p90, 4),
                number(kl.p99, 4),
                number(kl.p99_9, 4),
                number(kl.max, 4),
                number(kl.top1),
                number(kl.top5)});
    for (const auto& bucket : kl.buckets) {
      buckets.row({{run->name},
                   integer(newest->first),
                   {concat(bucket.first, " to ", bucket.last), kNumber},
                   integer(bucket.tokens),
                   number(bucket.mean, 4)});
    }
  }
  return (spread.empty() ? "" : spread.html()) + (buckets.empty() ? "" : buckets.html());
}

std::string audit_text(const DataEvidence& data) {
  if (!data.audit) return data.not_audited.empty() ? kNone : data.not_audited;
  const RunAudit& audit = *data.audit;
  std::string text =
      concat(with_commas(static_cast<std::int64_t>(audit.batches_checked)), " of ",
             with_commas(static_cast<std::int64_t>(audit.steps)), " batches read again: ");
  if (audit.wrong.empty()) return text + "all as logged";
  return concat(text, audit.wrong.size(), " differ, the first at step ", audit.wrong.front().step);
}

}  // namespace

std::string summary_html(RunPages runs) {
  HtmlTable table("How far, how fast, how much memory",
                  {"Run", "Is", "Precision", "Steps", "Tokens", "Last loss", "Tokens/s", "MFU",
                   "Most memory", "Time in steps", "Skipped steps", "Resumes"});
  for (const RunPage* run : runs) {
    const RunTotals& totals = run->totals;
    const auto resumes = std::count_if(run->events.begin(), run->events.end(),
                                       [](const auto& event) { return event.event == "resume"; });
    const bool timed = totals.timed_seconds > 0;
    const double mfu =
        totals.mfu_sum / static_cast<double>(std::max<std::int64_t>(1, totals.mfu_steps));
    table.row(
        {{run->name},
         {run->producer.empty() ? std::string(name_of(run->kind))
                                : concat(name_of(run->kind), " of ", run->producer)},
         {run->precision.empty() ? kNone : run->precision},
         {totals.steps == 0
              ? kNone
              : concat(with_commas(totals.first_step), " to ", with_commas(totals.last_step)),
          kNumber},
         {totals.tokens == 0 ? kNone : human_count(static_cast<double>(totals.tokens)), kNumber},
         number(totals.last_loss),
         {timed ? human_count(totals.tokens_timed / totals.timed_seconds) : kNone, kNumber},
         {totals.mfu_steps > 0 ? html_number(100 * mfu, 3) + "%" : kNone, kNumber},
         {totals.most_memory_bytes > 0
              ? human_bytes(static_cast<std::uint64_t>(totals.most_memory_bytes))
              : kNone,
          kNumber},
         {totals.seconds > 0 ? human_seconds(totals.seconds) : kNone, kNumber},
         integer(totals.skipped),
         integer(resumes)});
  }
  return table.html();
}

std::string ablations_html(std::span<const AblationFile> ablations) {
  if (ablations.empty()) return "";
  std::string html = R"(<section id="ablation" aria-labelledby="ablation-title">
<h2 id="ablation-title">Ablation</h2>
)";
  for (const AblationFile& file : ablations) {
    const Ablation& ablation = file.ablation;
    if (!file.finished) {
      html += concat("<p>", html_escape(file.recipe),
                     ": not finished; the same command goes on with it.</p>\n");
      continue;
    }
    HtmlTable table(concat("Variants of ", file.recipe, ", ", with_commas(ablation.steps),
                           " steps each; intervals of 95%"),
                    {"Variant", "Parameters", "FLOPs a step", "Tokens/s", "Speed ratio",
                     "Training loss", "Held-out loss", "Difference"});
    for (const AblationRow& row : ablation.rows) {
      table.row({{row.label},
                 {human_count(static_cast<double>(row.size.parameters)), kNumber},
                 {human_count(row.size.step_flops), kNumber},
                 {human_count(row.tokens_per_s), kNumber},
                 {with_interval(row.speed_ratio, 3), kNumber},
                 number(row.train_loss),
                 number(row.heldout_loss),
                 {with_interval(row.heldout_delta, 3), kNumber}});
    }
    html += table.html();
    html += concat(
        "<p class=\"hint\">A speed ratio above 1 is faster than the first variant, measured in "
        "turns of ",
        ablation.block, " steps; a difference below 0 is a lower held-out loss. ",
        html_escape(file.machine), ".</p>\n");
  }
  return html + "</section>\n";
}

std::string surfaces_html(RunPages runs) {
  std::string html;
  std::string group;
  for (const ChartSurface& surface : surfaces_of(runs)) {
    if (surface.group != group) {
      if (!group.empty()) html += "</details>\n";
      group = surface.group;
      html += concat("<details open><summary>", html_escape(group), ": table</summary>\n");
    }
    std::set<std::int64_t> steps;
    for (const auto& [run, line] : surface.by_run) {
      steps.insert(line.steps.end() -
                       static_cast<std::ptrdiff_t>(std::min(line.steps.size(), kMostTableSteps)),
                   line.steps.end());
    }
    std::vector<std::string> headers = {"Run"};
    for (const std::int64_t step : steps) headers.push_back("Step " + with_commas(step));
    HtmlTable table(concat(surface.label, ", ", surface.unit), headers);
    for (const auto& [run, line] : surface.by_run) {
      std::vector<Cell> row = {{runs[run]->name}};
      for (const std::int64_t step : steps) {
        const auto found = std::lower_bound(line.steps.begin(), line.steps.end(), step);
        const bool there = found != line.steps.end() && *found == step;
        const auto at = static_cast<std::size_t>(found - line.steps.begin());
        row.push_back({there ? with_error(line.values[at]) : kNone, kNumber});
      }
      table.row(row);
    }
    html += table.html();
  }
  if (!group.empty()) html += "</details>\n";
  html += kl_details_html(runs);
  return html.empty() ? "<p>No evaluation of a held-out surface was found.</p>\n" : html;
}

std::string events_html(RunPages runs) {
  HtmlTable table("What happened", {"Run", "Step", "Event", "Time (UTC)", "Said"});
  for (const RunPage* run : runs) {
    for (const RunEvent& event : run->events) {
      if (event.event == "evaluation" || event.event == "sample") continue;
      table.row(
          {{run->name}, integer(event.step), {event.event}, {event.time}, {event.text, "wide"}});
    }
  }
  return table.empty() ? "<p>No events are logged.</p>\n" : table.html();
}

std::string data_html(RunPages runs, std::span<const DataEvidence> data) {
  HtmlTable table("Which data each run took",
                  {"Run", "Epoch", "Entries taken", "Taken again", "Passed over", "Finding"});
  HtmlTable tokens("Tokens by label in the batches read again",
                   {"Run", "Label", "Tokens", "Share"});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ConsumedLedger& ledger = data[i].ledger;
    const std::string audit = audit_text(data[i]);
    if (ledger.epochs.empty() && !data[i].audit) {
      table.row({{runs[i]->name}, {kNone}, {kNone}, {kNone}, {kNone}, {audit, "wide"}});
    }
    for (const auto& epoch : ledger.epochs) {
      const std::string finding =
          concat(epoch.repeated == 0 ? "each entry of the order at most once"
                                     : "ENTRIES TAKEN MORE THAN ONCE",
                 ledger.steps_follow ? "" : "; STEPS DO NOT FOLLOW EACH OTHER", "; ", audit);
      table.row({{runs[i]->name},
                 integer(epoch.epoch),
                 integer(epoch.entries),
                 integer(epoch.repeated),
                 integer(epoch.passed_over),
                 {finding, ledger.ok() && (!data[i].audit || data[i].audit->ok()) ? "wide good"
                                                                                  : "wide bad"}});
    }
    if (!data[i].audit) continue;
    double all = 0;
    for (const auto& [label, count] : data[i].audit->tokens_by_label) {
      all += static_cast<double>(count);
    }
    for (const auto& [label, count] : data[i].audit->tokens_by_label) {
      tokens.row({{runs[i]->name},
                  {label},
                  integer(static_cast<std::int64_t>(count)),
                  {all > 0 ? html_number(100 * static_cast<double>(count) / all, 3) + "%" : kNone,
                   kNumber}});
    }
  }
  return (table.empty() ? "<p>Nothing is known about the data.</p>\n" : table.html()) +
         (tokens.empty() ? "" : tokens.html());
}

std::string recipes_html(RunPages runs) {
  std::string html;
  for (const RunPage* run : runs) {
    if (run->recipe_toml.empty()) continue;
    html +=
        concat("<details><summary>", html_escape(run->name),
               "</summary><pre class=\"scroll\" tabindex=\"0\" role=\"region\" "
               "aria-label=\"Recipe of ",
               html_escape(run->name), "\">", html_escape(run->recipe_toml), "</pre></details>\n");
  }
  return html.empty() ? "<p>No recipe: neither is a run of this program.</p>\n" : html;
}

std::string notes_html(RunPages runs) {
  std::string html = "<ul>\n";
  for (const RunPage* run : runs) {
    if (run->series.width() > 1) {
      html += concat("<li>", html_escape(run->name), ": a point of its curves stands for ",
                     with_commas(run->series.width()),
                     " steps: the line is their mean, the band reaches from the smallest to the "
                     "largest.</li>\n");
    }
    for (const auto& note : run->notes) html += concat("<li>", html_escape(note), "</li>\n");
  }
  return html +
         "<li>Bars and ± are 95% intervals of each number by itself: over documents for losses and "
         "KL, over questions for tasks. A difference of two runs on the same documents is known "
         "better than that; the verdict uses it.</li>\n<li>Smoothing averages the loss "
         "exponentially over about the chosen number of steps.</li>\n</ul>\n";
}

}  // namespace lockstep
