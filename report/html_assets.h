#pragma once

#include <string_view>

namespace lockstep {

// A file of report/assets or third_party/uplot, part of the program, and the SHA-256 of its bytes
// as 64 hexadecimal digits.
struct HtmlAsset {
  std::string_view text;
  std::string_view sha256_hex;
};

[[nodiscard]] HtmlAsset page_template();
[[nodiscard]] HtmlAsset page_style();
[[nodiscard]] HtmlAsset page_script();
[[nodiscard]] HtmlAsset uplot_style();
[[nodiscard]] HtmlAsset uplot_script();
[[nodiscard]] HtmlAsset uplot_licence();

}  // namespace lockstep
