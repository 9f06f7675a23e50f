#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "eval/text_steps.h"

namespace lockstep {

// One row of a data set and where it stands, for errors ("arc.jsonl.gz:12").
struct DataRow {
  Json json;
  std::string where;
};

// The value at a dotted path ("choices.text", "choices.0" into an array), or null when there is
// none.
[[nodiscard]] const Json* find_field(const Json& json, std::string_view path);
// The same; throws kInput naming the row and the field when it is missing.
[[nodiscard]] const Json& field_of(const DataRow& row, std::string_view path);
// Text, or an integer in decimals. Throws kInput for anything else.
[[nodiscard]] std::string field_text(const DataRow& row, std::string_view path);

// Text with fields of a row in it: "Question: {{question|strip}}\nAnswer:". After the field's path
// come steps (text_steps.h), applied from the left.
class TextTemplate {
 public:
  TextTemplate() = default;
  // Throws kConfig, beginning with `where`.
  TextTemplate(std::string_view text, std::string_view where);

  // Throws kInput naming the row and the field.
  [[nodiscard]] std::string render(const DataRow& row) const;

 private:
  struct Part {
    std::string literal;  // before the field
    std::string field;    // empty: none
    std::vector<TextStep> steps;
  };
  std::vector<Part> parts_;
};

}  // namespace lockstep
