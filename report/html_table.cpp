#include "report/html_table.h"

#include "base/error.h"
#include "report/html_text.h"

namespace lockstep {

HtmlTable::HtmlTable(std::string_view caption, const std::vector<std::string>& headers) {
  const std::string escaped = html_escape(caption);
  html_ = concat("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"", escaped,
                 "\"><table><caption>", escaped, "</caption><thead><tr>");
  for (const auto& header : headers) {
    html_ += concat("<th scope=\"col\">", html_escape(header), "</th>");
  }
  html_ += "</tr></thead><tbody>\n";
}

void HtmlTable::row(const std::vector<Cell>& cells) {
  ++rows_;
  html_ += "<tr>";
  for (const auto& cell : cells) {
    const bool first = &cell == cells.data();
    html_ += first ? "<th scope=\"row\"" : "<td";
    if (!cell.html_class.empty()) html_ += concat(" class=\"", html_escape(cell.html_class), '"');
    html_ += concat(">", html_escape(cell.text), first ? "</th>" : "</td>");
  }
  html_ += "</tr>\n";
}

std::string HtmlTable::html() const { return html_ + "</tbody></table></div>\n"; }

}  // namespace lockstep
