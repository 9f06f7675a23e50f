#include "report/html_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/json.h"
#include "base/text.h"
#include "report/html_table.h"

namespace lockstep {
namespace {

TEST(HtmlEscape, LeavesNoCharacterThatMarkupCouldBeMadeOf) {
  EXPECT_EQ(html_escape("<script>alert('x' & \"y\")</script>"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;");
  EXPECT_EQ(html_escape("plain text, ä and 数\n\t"), "plain text, ä and 数\n\t");
}

TEST(HtmlEscape, ReplacesWhatIsNotTextAndStaysUtf8) {
  EXPECT_EQ(html_escape(std::string_view("a\x00\x1b[31m\x7f", 8)),
            "a\xEF\xBF\xBD\xEF\xBF\xBD[31m\xEF\xBF\xBD");
  EXPECT_EQ(html_escape("\xFF<"), "\xEF\xBF\xBD&lt;");
  EXPECT_EQ(html_escape("cut \xE6\x95"), "cut \xEF\xBF\xBD\xEF\xBF\xBD");
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_TRUE(is_valid_utf8(html_escape(std::string(3, static_cast<char>(byte))))) << byte;
  }
}

TEST(JsonForScript, CannotEndItsElementAndIsTheSameJson) {
  const Json value = {{"</script><script>", "<!-- &amp; \xE2\x80\xA8 \xE2\x80\xA9 --> \" \\"}};
  const std::string safe = json_for_script(value.dump());
  for (const char* each : {"<", ">", "&", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
    EXPECT_EQ(safe.find(each), std::string::npos) << each;
  }
  EXPECT_EQ(parse_json(safe, "safe"), value);
}

TEST(HtmlNumber, SaysNothingOfWhatIsNotFinite) {
  EXPECT_EQ(html_number(1.0 / 3, 4), "0.3333");
  EXPECT_EQ(html_number(1e-7, 3), "1e-07");
  EXPECT_EQ(html_number(std::numeric_limits<double>::quiet_NaN()), "–");
  EXPECT_EQ(html_number(std::numeric_limits<double>::infinity()), "–");
}

TEST(HtmlTable, EscapesCaptionHeadersAndCells) {
  HtmlTable table("<c>", {"<h>"});
  EXPECT_TRUE(table.empty());
  table.row({{"<r>"}, {"<d>", "a\"b"}});
  const std::string html = table.html();
  for (const char* each : {"<c>", "<h>", "<r>", "<d>", "a\"b"}) {
    EXPECT_EQ(html.find(each), std::string::npos) << each;
  }
  for (const char* each : {"&lt;c&gt;", "<th scope=\"row\">&lt;r&gt;</th>", "&lt;d&gt;</td>"}) {
    EXPECT_NE(html.find(each), std::string::npos) << html;
  }
}

}  // namespace
}  // namespace lockstep
