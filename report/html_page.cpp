#include "report/html_page.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "report/html_assets.h"
#include "report/html_text.h"
#include "report/html_verdict.h"

namespace lockstep {
namespace {

// The base64 of the bytes that hexadecimal digits stand for, as a policy wants a hash.
std::string base64_of_hex(std::string_view hex) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 6) {  // 3 bytes: 4 digits
    const std::string part(hex.substr(i, 6));
    auto bits = static_cast<std::uint32_t>(std::stoul(part, nullptr, 16));
    bits <<= 4 * (6 - part.size());
    for (std::size_t digit = 0; digit < 4; ++digit) {
      const bool there = digit <= part.size() / 2;
      out += there ? kDigits[(bits >> (18 - 6 * digit)) & 63U] : '=';
    }
  }
  return out;
}

std::string source_of(const HtmlAsset& asset) {
  return concat(" 'sha256-", base64_of_hex(asset.sha256_hex), "'");
}

// Replaces each {{name}} of the template once; what is put in is not searched.
std::string fill(std::string_view text,
                 std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string out;
  while (true) {
    const std::size_t open = text.find("{{");
    out += text.substr(0, open);
    if (open == std::string_view::npos) return out;
    const std::size_t close = text.find("}}", open);
    const std::string_view name = text.substr(open + 2, close - open - 2);
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const auto& value) { return value.first == name; });
    LOCKSTEP_CHECK(found != values.end(), "page.html: nothing for ", name);
    out += found->second;
    text.remove_prefix(close + 2);
  }
}

DataEvidence data_evidence(FileSystem& fs, const Evidence& evidence, const ReportOptions& options) {
  DataEvidence data;
  if (evidence.kind != EvidenceKind::kRun) {
    data.not_audited = "not a run of this program: nothing is logged about its data";
    return data;
  }
  data.ledger = read_ledger(fs, evidence.path);
  if (options.audit_batches == 0) {
    data.not_audited = "no batch was read again";
    return data;
  }
  try {
    data.audit = audit_run(fs, evidence.path, {.every = 1, .most_batches = options.audit_batches});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kBug) throw;
    data.not_audited = concat("batches could not be read again: ", error.what());
  }
  return data;
}

}  // namespace

std::string content_security_policy(bool live) {
  return concat("default-src 'none'; script-src", source_of(uplot_script()),
                source_of(page_script()), "; style-src", source_of(uplot_style()),
                source_of(page_style()), "; img-src data:; connect-src ",
                live ? "'self'" : "'none'", "; base-uri 'none'; form-action 'none'");
}

std::string to_html(const HtmlPage& page) {
  return fill(page_template().text,
              {{"title", html_escape(page.title)},
               {"policy", html_escape(content_security_policy(!page.live_json.empty()))},
               {"uplot_style", uplot_style().text},
               {"page_style", page_style().text},
               {"uplot_script", uplot_script().text},
               {"page_script", page_script().text},
               {"uplot_licence", html_escape(uplot_licence().text)},
               {"verdict", page.verdict},
               {"ablation", page.ablation},
               {"summary", page.summary},
               {"surfaces", page.surfaces},
               {"data", page.data},
               {"events", page.events},
               {"recipes", page.recipes},
               {"notes", page.notes},
               {"chart_json", json_for_script(page.chart_json)},
               {"live_json",
                page.live_json.empty() ? std::string("null") : json_for_script(page.live_json)}});
}

std::size_t points_for(std::size_t runs) {
  return std::max<std::size_t>(512, 4096 / std::max<std::size_t>(1, (runs + 1) / 2));
}

std::string make_report(FileSystem& fs, std::span<const Evidence> evidence,
                        std::span<const Comparison> comparisons, const ReportOptions& options) {
  const auto say = [&](const std::string& text) {
    if (options.progress) options.progress(text);
  };
  const std::size_t points = points_for(evidence.size());
  std::vector<std::unique_ptr<RunReader>> readers;
  std::vector<const RunPage*> runs;
  std::vector<DataEvidence> data;
  for (const Evidence& each : evidence) {
    say("reading " + each.name);
    readers.push_back(std::make_unique<RunReader>(fs, each, points));
    readers.back()->refresh();
    runs.push_back(&readers.back()->page());
    say("auditing the data of " + each.name);
    data.push_back(data_evidence(fs, each, options));
  }
  std::vector<LossDifference> differences;
  std::string recipe_differences;
  for (std::size_t i = 1; i < evidence.size(); ++i) {
    differences.push_back(loss_difference(i, evidence[0].curve, evidence[i].curve, points));
    recipe_differences += recipe_difference_html(evidence[0], evidence[i]);
  }
  std::string title = "Lockstep: ";
  for (const RunPage* run : runs) title += (run == runs.front() ? "" : ", ") + run->name;
  return to_html({.title = title,
                  .verdict = verdict_html(comparisons),
                  .ablation = ablations_html(options.ablations),
                  .summary = summary_html(runs),
                  .surfaces = surfaces_html(runs),
                  .data = data_html(runs, data),
                  .events = events_html(runs),
                  .recipes = recipe_differences + recipes_html(runs),
                  .notes = notes_html(runs),
                  .chart_json = chart_json(runs, differences),
                  .live_json = {}});
}

}  // namespace lockstep
