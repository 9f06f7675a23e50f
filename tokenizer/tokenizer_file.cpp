#include "tokenizer/tokenizer_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "tokenizer/json_field.h"
#include "tokenizer/model_reader.h"
#include "tokenizer/pre_tokenizer_reader.h"

namespace lockstep {
namespace {

bool reads_nfc(const JsonField& normalizer) {
  const std::string type = normalizer.type();
  if (type == "NFC") {
    normalizer.allow_keys({"type"});
    return true;
  }
  if (type == "Sequence") {
    normalizer.allow_keys({"type", "normalizers"});
    bool nfc = false;
    for (const JsonField& part : normalizer.at("normalizers").items()) nfc |= reads_nfc(part);
    return nfc;
  }
  normalizer.refuse("normalizer '", printable(type), "' is not supported (NFC and Sequence are)");
}

void check_byte_level_options(const JsonField& component) {
  component.allow_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
}

void check_decoder(const JsonField& decoder) {
  const std::string type = decoder.type();
  if (type == "ByteLevel") return check_byte_level_options(decoder);
  if (type == "Sequence") {
    decoder.allow_keys({"type", "decoders"});
    const auto parts = decoder.at("decoders").items();
    if (parts.size() == 1) return check_decoder(parts[0]);
    decoder.refuse("a sequence of ", parts.size(), " decoders is not supported, only ByteLevel");
  }
  decoder.refuse("decoder '", printable(type), "' is not supported, only ByteLevel");
}

class TemplateReader {
 public:
  explicit TemplateReader(TokenizerFile& file) : file_(file) {}

  void read(const JsonField& processor) {
    const std::string type = processor.type();
    if (type == "ByteLevel") return check_byte_level_options(processor);  // only trims offsets
    if (type == "TemplateProcessing") return read_template(processor);
    if (type == "Sequence") {
      processor.allow_keys({"type", "processors"});
      for (const JsonField& part : processor.at("processors").items()) read(part);
      return;
    }
    processor.refuse("post-processor '", printable(type),
                     "' is not supported (ByteLevel, TemplateProcessing and Sequence are)");
  }

 private:
  void read_template(const JsonField& processor) {
    if (read_one_) processor.refuse("a second TemplateProcessing");
    read_one_ = true;
    processor.allow_keys({"type", "single", "pair", "special_tokens"});
    bool behind = false;
    for (const JsonField& part : processor.at("single").items()) {
      part.allow_keys({"SpecialToken", "Sequence"});
      if (const auto special = part.find("SpecialToken")) {
        append(processor, *special, behind ? file_.suffix : file_.prefix);
        continue;
      }
      const JsonField sequence = part.at("Sequence");
      if (behind || sequence.at("id").text() != "A") sequence.refuse("wanted sequence 'A', once");
      behind = true;
    }
    if (!behind) processor.at("single").refuse("the template leaves the text out");
  }

  void append(const JsonField& processor, const JsonField& special,
              std::vector<std::uint32_t>& ids) {
    const std::string name = special.at("id").text();
    const auto tokens = processor.at("special_tokens").find(name);
    if (!tokens) special.refuse("'", printable(name), "' is not in special_tokens");
    for (const JsonField& id : tokens->at("ids").items()) {
      if (id.id() >= file_.tokens.size() || file_.tokens[id.id()].empty()) {
        id.refuse("there is no token ", id.id());
      }
      ids.push_back(id.id());
    }
  }

  TokenizerFile& file_;
  bool read_one_ = false;
};

// A value takes many times the memory of its text, so their number is bounded before they are made.
// The largest vocabularies in use have some two million.
void check_size(std::string_view json, std::string_view name) {
  constexpr std::size_t kMaxValues = 8'000'000;
  std::size_t values = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') in_string = !in_string;
    if (c == '\\' && in_string) ++i;
    if (!in_string && (c == ',' || c == '[' || c == '{')) ++values;
  }
  if (values > kMaxValues) {
    fail(ErrorKind::kInput, name, ": more than ", kMaxValues, " JSON values; this is no tokenizer");
  }
}

// The document without the parts that the fingerprint takes in another form.
std::string settings_of(const Json& root) {
  Json settings = Json::object();
  for (const auto& [key, value] : root.items()) {
    if (key != "added_tokens" && key != "model") settings[key] = value;
  }
  for (const auto& [key, value] : root.at("model").items()) {
    if (key != "vocab" && key != "merges") settings["model"][key] = value;
  }
  return settings.dump();
}

}  // namespace

TokenizerFile parse_tokenizer_file(std::string_view json, std::string_view name) {
  check_size(json, name);
  const Json document = parse_json(json, name);
  const JsonField root(document, concat(name, ": "));
  root.allow_keys({"version", "truncation", "padding", "added_tokens", "normalizer",
                   "pre_tokenizer", "post_processor", "decoder", "model"});
  if (const auto version = root.find("version"); version && version->text() != "1.0") {
    version->refuse("found '", printable(version->text()), "', wanted '1.0'");
  }
  for (const char* key : {"truncation", "padding"}) {
    if (const auto field = root.find(key)) {
      field->refuse("is set; it would change what a text is encoded to. Set it to null");
    }
  }
  TokenizerFile file;
  ModelReader(file).read(root);
  if (const auto normalizer = root.find("normalizer")) file.nfc = reads_nfc(*normalizer);
  PreTokenizerReader(file).read(root.at("pre_tokenizer"));
  if (const auto processor = root.find("post_processor")) TemplateReader(file).read(*processor);
  if (const auto decoder = root.find("decoder")) check_decoder(*decoder);
  file.settings = settings_of(document);
  return file;
}

}  // namespace lockstep
