#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep {

// Inside io: a parser's events, all refused unless a subclass takes them, so that what a format
// does not allow cannot slip through, and so that no tree of the whole text is ever built. reject()
// throws kData with the file's name.
class JsonEvents : public Json::json_sax_t {
 public:
  explicit JsonEvents(std::string where) : where_(std::move(where)) {}

  // Feeds all of `text`. NUL is refused here because the parser takes it for the end.
  void run(std::string_view text) {
    if (const auto at = text.find('\0'); at != std::string_view::npos) {
      fail(ErrorKind::kData, where_, ": NUL at byte ", at, " of the JSON text");
    }
    if (!is_valid_utf8(text)) fail(ErrorKind::kData, where_, ": the JSON text is not UTF-8");
    Json::sax_parse(text.begin(), text.end(), this);
  }

  bool null() override { reject("null"); }
  bool boolean(bool) override { reject("a boolean"); }
  bool number_integer(Json::number_integer_t value) override {
    reject(concat("the number ", value == 0 ? "-0" : std::to_string(value)));
  }
  bool number_unsigned(Json::number_unsigned_t value) override {
    reject(concat("the number ", value));
  }
  bool number_float(Json::number_float_t, const Json::string_t& text) override {
    reject(concat("the number ", printable(text, 40)));
  }
  bool string(Json::string_t& value) override {
    reject(concat("the string \"", printable(value, 80), "\""));
  }
  bool binary(Json::binary_t&) override { reject("binary data"); }
  bool start_object(std::size_t) override { reject("an object"); }
  bool end_object() override { reject("the end of an object"); }
  bool start_array(std::size_t) override { reject("an array"); }
  bool end_array() override { reject("the end of an array"); }
  bool key(Json::string_t& value) override {
    reject(concat("the key \"", printable(value, 80), "\""));
  }
  bool parse_error(std::size_t at, const std::string&, const Json::exception&) override {
    fail(ErrorKind::kData, where_, ": not valid JSON at byte ", at);
  }

 protected:
  // The text that says why `found` may not stand here, without the file's name.
  [[nodiscard]] virtual std::string refusal(const std::string& found) const = 0;

  [[noreturn]] void reject(const std::string& found) const {
    fail(ErrorKind::kData, where_, ": ", refusal(found));
  }
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  std::string where_;
};

}  // namespace lockstep
