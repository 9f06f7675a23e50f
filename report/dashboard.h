#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "report/html_page.h"

namespace lockstep {

// A run as its live page shows it: reads what is new in the run directory when asked, at most once
// in `refresh_ms`. The run may be training: a torn last line is left for later, a resume that
// replaces steps is seen. Thread-safe. Errors as RunReader; the next call tries again.
class Dashboard {
 public:
  // `evidence` of a run directory (kConfig otherwise). `fs` must outlive it.
  Dashboard(FileSystem& fs, const Evidence& evidence, int refresh_ms = 1000);

  // The whole page.
  [[nodiscard]] std::string page();

  // What a page has already, as it says in its question for news.
  struct Known {
    std::int64_t since = -1;  // its last step
    std::int64_t width = 0;   // steps a point of it stands for
    std::int64_t generation = 0;
    std::int64_t sections = 0;  // revision of the tables
  };
  // JSON: {"generation", "width", "step": [...], "columns", "marks", "surfaces",
  // "section_revision", "sections": {NAME: HTML}}. The points after `since`, the unfinished one
  // before it included; all of them when generation or width changed; sections only when they did.
  [[nodiscard]] std::string news(const Known& known);

 private:
  void refresh();
  [[nodiscard]] HtmlPage sections() const;

  FileSystem& fs_;
  std::mutex mutex_;
  RunReader reader_;
  std::int64_t refresh_ns_;
  std::int64_t refreshed_ns_ = 0;  // 0: not yet
  HtmlPage page_;                  // its sections
  std::int64_t section_revision_ = 0;
};

}  // namespace lockstep
