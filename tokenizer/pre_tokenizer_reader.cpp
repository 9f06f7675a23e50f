#include "tokenizer/pre_tokenizer_reader.h"

#include <utility>

#include "base/text.h"
#include "tokenizer/regex_translation.h"
#include "tokenizer/unicode.h"

namespace lockstep {
namespace {

SplitBehavior read_behavior(const JsonField& field) {
  static constexpr std::pair<std::string_view, SplitBehavior> kBehaviors[] = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  const std::string name = field.text();
  for (const auto& [known, behavior] : kBehaviors) {
    if (name == known) return behavior;
  }
  field.refuse("split behavior '", printable(name), "' is not known");
}

SplitStage stage_of(SplitStage::Delimiter delimiter, SplitBehavior behavior) {
  SplitStage stage;
  stage.delimiter = delimiter;
  stage.behavior = behavior;
  return stage;
}

}  // namespace

void PreTokenizerReader::read(const JsonField& pre_tokenizer) {
  read_component(pre_tokenizer, 0);
  if (!byte_level_seen_) {
    pre_tokenizer.refuse("there is no ByteLevel step; only byte-level tokenizers are supported");
  }
}

void PreTokenizerReader::read_component(const JsonField& component, int depth) {
  using Delimiter = SplitStage::Delimiter;
  const std::string type = component.type();
  if (type == "Sequence") {
    component.allow_keys({"type", "pretokenizers"});
    for (const JsonField& part : component.at("pretokenizers").items())
      read_component(part, depth + 1);
  } else if (type == "ByteLevel") {
    read_byte_level(component);
  } else if (type == "Split") {
    add(read_split(component));
  } else if (type == "Digits") {
    component.allow_keys({"type", "individual_digits"});
    const bool individual = component.at("individual_digits").boolean();
    add(stage_of(Delimiter::kNumber,
                 individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous));
  } else if (type == "Punctuation") {
    component.allow_keys({"type", "behavior"});
    const auto behavior = component.find("behavior");
    add(stage_of(Delimiter::kPunctuation,
                 behavior ? read_behavior(*behavior) : SplitBehavior::kIsolated));
  } else if (type == "WhitespaceSplit") {
    component.allow_keys({"type"});
    add(stage_of(Delimiter::kWhiteSpace, SplitBehavior::kRemoved));
  } else if (type == "CharDelimiterSplit") {
    component.allow_keys({"type", "delimiter"});
    const JsonField delimiter = component.at("delimiter");
    const std::string text = delimiter.text();
    SplitStage stage = stage_of(Delimiter::kCharacter, SplitBehavior::kRemoved);
    if (text.empty() || code_point_at(text, 0).bytes != text.size()) {
      delimiter.refuse("wanted one character, found '", printable(text), "'");
    }
    stage.character = code_point_at(text, 0).code;
    add(std::move(stage));
  } else {
    component.refuse("pre-tokenizer '", printable(type),
                     "' is not supported (ByteLevel, Split, Sequence, Digits, Punctuation, "
                     "WhitespaceSplit and CharDelimiterSplit are)");
  }
}

void PreTokenizerReader::add(SplitStage stage) {
  (byte_level_seen_ ? file_.splits_after : file_.splits_before).push_back(std::move(stage));
}

void PreTokenizerReader::read_byte_level(const JsonField& component) {
  component.allow_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (byte_level_seen_) component.refuse("a second ByteLevel step");
  byte_level_seen_ = true;
  file_.byte_level.add_prefix_space = component.at("add_prefix_space").boolean();
  // Files from before the option existed mean true.
  if (component.boolean_or("use_regex", true)) {
    file_.byte_level.pattern.emplace(pattern_text(KnownPattern::kGpt2), component.place());
  }
}

SplitStage PreTokenizerReader::read_split(const JsonField& component) {
  component.allow_keys({"type", "pattern", "behavior", "invert"});
  const JsonField pattern = component.at("pattern");
  pattern.allow_keys({"Regex", "String"});
  SplitStage stage =
      stage_of(SplitStage::Delimiter::kPattern, read_behavior(component.at("behavior")));
  stage.invert = component.boolean_or("invert", false);
  if (const auto regex = pattern.find("Regex")) {
    if (pattern.find("String")) pattern.refuse("both 'Regex' and 'String'");
    stage.pattern.emplace(regex->text(), regex->place());
  } else {
    const JsonField text = pattern.at("String");
    stage.pattern.emplace(escape_regex(text.text()), text.place());
  }
  return stage;
}

}  // namespace lockstep
