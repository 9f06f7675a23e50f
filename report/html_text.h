#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// Text from outside made safe inside an HTML element or a quoted attribute: & < > " ' become
// entities; invalid UTF-8 and control characters other than newline and tab become U+FFFD.
[[nodiscard]] std::string html_escape(std::string_view text);

// A JSON text made safe inside a <script> element, still the same JSON: < > & and the line
// separators U+2028 and U+2029 become \u escapes, so that neither "</script>" nor "<!--" can
// appear. `json` must be valid UTF-8.
[[nodiscard]] std::string json_for_script(std::string_view json);

// A finite number with so many significant digits, else "–".
[[nodiscard]] std::string html_number(double value, int digits = 5);

}  // namespace lockstep
