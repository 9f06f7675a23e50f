#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/ablation_file.h"
#include "report/comparison.h"
#include "report/html_data.h"
#include "report/html_sections.h"

namespace lockstep {

// One HTML document that loads nothing from anywhere: styles, scripts, the chart library with its
// licence and all numbers are in it, and its content security policy forbids the rest.
struct HtmlPage {
  std::string title;
  std::string verdict;        // HTML of each section, as html_sections and html_verdict make it
  std::string ablation = {};  // its whole section; empty: none
  std::string summary;
  std::string surfaces;
  std::string data;
  std::string events;
  std::string recipes;
  std::string notes;
  std::string chart_json;  // as html_data makes it
  // The dashboard's state as JSON: the page then asks for news at "data.json". Empty: a report.
  std::string live_json;
};
[[nodiscard]] std::string to_html(const HtmlPage& page);

// The policy that the page states about itself and the dashboard sends again as a header.
[[nodiscard]] std::string content_security_policy(bool live);

// Points of a curve, so that a page of many runs stays a few megabytes.
[[nodiscard]] std::size_t points_for(std::size_t runs);

struct ReportOptions {
  std::uint64_t audit_batches = 64;          // of each run, read again; 0: none
  std::vector<AblationFile> ablations = {};  // shown as tables above their runs
  std::function<void(const std::string&)> progress = {};
};

// The page about runs, bundles and models, with what comparisons of them found on top; the charts
// show the difference of each one's training loss from the first's.
[[nodiscard]] std::string make_report(FileSystem& fs, std::span<const Evidence> evidence,
                                      std::span<const Comparison> comparisons,
                                      const ReportOptions& options);

}  // namespace lockstep
