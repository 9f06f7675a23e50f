#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "report/ablation_file.h"
#include "report/html_ledger.h"
#include "report/html_run.h"
#include "train/run_audit.h"

// The parts of the page that are tables and text, as HTML; every text from outside is escaped.
namespace lockstep {

// What is known about the data that a run consumed.
struct DataEvidence {
  ConsumedLedger ledger;
  std::optional<RunAudit> audit;  // batches read again
  std::string not_audited;        // why there is no audit
};

using RunPages = std::span<const RunPage* const>;

// A row a run: what it is, how far, how fast.
[[nodiscard]] std::string summary_html(RunPages runs);
// A section with a table an ablation, a row a variant; empty without any.
[[nodiscard]] std::string ablations_html(std::span<const AblationFile> ablations);
// The held-out numbers behind the charts: a table a surface, the newest steps of each run.
[[nodiscard]] std::string surfaces_html(RunPages runs);
// Starts, resumes, forks, replays, warnings.
[[nodiscard]] std::string events_html(RunPages runs);
[[nodiscard]] std::string data_html(RunPages runs, std::span<const DataEvidence> data);
// Each run's recipe as it is.
[[nodiscard]] std::string recipes_html(RunPages runs);
// What was passed over, and how the charts were thinned.
[[nodiscard]] std::string notes_html(RunPages runs);

}  // namespace lockstep
