#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// A table of the page: a caption, a header row, rows whose first cell is their header. Wide ones
// scroll by themselves, so that the page never does.
class HtmlTable {
 public:
  // Everything given here is text and is escaped.
  HtmlTable(std::string_view caption, const std::vector<std::string>& headers);

  struct Cell {
    std::string text;
    std::string html_class = {};  // one of the style sheet's, "number" say
  };
  void row(const std::vector<Cell>& cells);
  [[nodiscard]] bool empty() const { return rows_ == 0; }
  [[nodiscard]] std::string html() const;

 private:
  std::string html_;
  int rows_ = 0;
};

}  // namespace lockstep
