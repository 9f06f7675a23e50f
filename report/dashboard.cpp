#include "report/dashboard.h"

#include <array>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "report/html_verdict.h"

namespace lockstep {
namespace {

constexpr int kAskAgainMs = 2000;

// The sections that a run changes, by the name that the page knows them by.
std::array<std::pair<const char*, const std::string*>, 6> live_sections(const HtmlPage& page) {
  return {{{"summary", &page.summary},
           {"surfaces", &page.surfaces},
           {"data", &page.data},
           {"events", &page.events},
           {"recipes", &page.recipes},
           {"notes", &page.notes}}};
}

}  // namespace

Dashboard::Dashboard(FileSystem& fs, const Evidence& evidence, int refresh_ms)
    : fs_(fs),
      reader_(fs, evidence, points_for(1)),
      refresh_ns_(std::int64_t{1'000'000} * refresh_ms) {
  if (evidence.kind != EvidenceKind::kRun) {
    fail(ErrorKind::kConfig, printable(evidence.path), ": is a ", name_of(evidence.kind),
         ", the dashboard shows a run directory; see lockstep report");
  }
}

void Dashboard::refresh() {
  if (refreshed_ns_ != 0 && now_ns() - refreshed_ns_ < refresh_ns_) return;
  reader_.refresh();
  HtmlPage fresh = sections();
  bool changed = section_revision_ == 0;
  const auto before = live_sections(page_);
  const auto after = live_sections(fresh);
  for (std::size_t i = 0; i < before.size(); ++i) {
    changed = changed || *before[i].second != *after[i].second;
  }
  if (changed) {
    page_ = std::move(fresh);
    ++section_revision_;
  }
  refreshed_ns_ = now_ns();
}

HtmlPage Dashboard::sections() const {
  const RunPage* const run = &reader_.page();
  const RunPages runs(&run, 1);
  const DataEvidence data{.ledger = read_ledger(fs_, run->path),
                          .audit = {},
                          .not_audited = "lockstep report reads batches again"};
  return {.title = "Lockstep: " + run->name,
          .verdict = verdict_html({}),
          .summary = summary_html(runs),
          .surfaces = surfaces_html(runs),
          .data = data_html(runs, std::span(&data, 1)),
          .events = events_html(runs),
          .recipes = recipes_html(runs),
          .notes = notes_html(runs),
          .chart_json = {},
          .live_json = {}};
}

std::string Dashboard::page() {
  const std::lock_guard lock(mutex_);
  refresh();
  HtmlPage page = page_;
  const RunPage* const run = &reader_.page();
  page.chart_json = chart_json(RunPages(&run, 1), {});
  page.live_json = concat(R"({"generation":)", reader_.generation(), R"(,"sections":)",
                          section_revision_, R"(,"interval_ms":)", kAskAgainMs, "}");
  return to_html(page);
}

std::string Dashboard::news(const Known& known) {
  const std::lock_guard lock(mutex_);
  refresh();
  const RunPage& run = reader_.page();
  const bool same = known.generation == reader_.generation() && known.width == run.series.width();
  std::string out = concat(R"({"generation":)", reader_.generation(), ",",
                           curve_json(run, same ? run.series.first_changed_since(known.since) : 0),
                           ",", marks_json(run), R"(,"section_revision":)", section_revision_);
  if (known.sections != section_revision_) {
    OrderedJson sections;
    for (const auto& [name, html] : live_sections(page_)) sections[name] = *html;
    out += R"(,"sections":)" + sections.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }
  return out + "}";
}

}  // namespace lockstep
