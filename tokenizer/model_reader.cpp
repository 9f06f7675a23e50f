#include "tokenizer/model_reader.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/unicode.h"

namespace lockstep {
namespace {

// Ids may leave holes, but a small file must not ask for a large table.
constexpr std::size_t kMaxHoles = 1U << 20U;
constexpr std::size_t kMaxAddedTokenBytes = 65536;

// Null and "" mean that there is none.
void refuse_text_option(const JsonField& model, std::string_view key) {
  if (const auto field = model.find(key); field && !field->text().empty()) {
    field->refuse("is '", printable(field->text()), "'; a byte-level tokenizer has none");
  }
}

}  // namespace

void ModelReader::read(const JsonField& root) {
  const JsonField model = root.at("model");
  if (const auto type = model.find("type"); type && type->text() != "BPE") {
    model.refuse("model '", printable(type->text()), "' is not supported, only BPE");
  }
  model.allow_keys({"type", "dropout", "unk_token", "continuing_subword_prefix",
                    "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab",
                    "merges"});
  check_options(model);
  read_vocabulary(model.at("vocab"));
  read_merges(model.at("merges"));
  read_byte_tokens(model);
  file_.ignore_merges = model.boolean_or("ignore_merges", false);
  if (const auto added = root.find("added_tokens")) read_added_tokens(*added);
}

void ModelReader::check_options(const JsonField& model) const {
  if (const auto dropout = model.find("dropout")) {
    if (!dropout->value().is_number() || dropout->value().get<double>() != 0) {
      dropout->refuse("merges dropped at random are not supported; set it to null");
    }
  }
  refuse_text_option(model, "continuing_subword_prefix");
  refuse_text_option(model, "end_of_word_suffix");
}

std::uint32_t ModelReader::find(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? kNoToken : found->second;
}

void ModelReader::read_vocabulary(const JsonField& vocabulary) {
  if (!vocabulary.value().is_object()) vocabulary.refuse("wanted an object of tokens and ids");
  const std::size_t count = vocabulary.value().size();
  const std::size_t limit = 2 * count + kMaxHoles;
  ids_.reserve(count);
  file_.model_ids.reserve(count);
  std::size_t size = 0;
  const auto& entries = vocabulary.value();
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    const std::string& token = entry.key();
    if (token.empty() || !entry->is_number_unsigned() || entry->get<std::uint64_t>() >= limit) {
      const JsonField field(*entry, concat(vocabulary.place(), "['", printable(token, 60), "']"));
      if (token.empty()) field.refuse("an empty token");
      field.refuse("id ", field.id(), " in a vocabulary of ", count, " tokens");
    }
    const auto id = entry->get<std::uint32_t>();
    size = std::max<std::size_t>(size, id + std::size_t{1});
    ids_.emplace(token, id);
    file_.model_ids.push_back(id);
  }
  if (count == 0) vocabulary.refuse("the vocabulary is empty");
  file_.tokens.resize(size);
  for (const auto& [token, id] : ids_) {
    std::string& bytes = file_.tokens[id];
    if (!bytes.empty()) vocabulary.refuse("two tokens have id ", id);
    bytes = from_byte_level(token).value_or(token);
  }
  std::sort(file_.model_ids.begin(), file_.model_ids.end());
  next_added_id_ = static_cast<std::uint32_t>(count);
}

void ModelReader::read_merges(const JsonField& merges) {
  if (!merges.value().is_array()) merges.refuse("wanted an array of pairs");
  file_.merges.reserve(merges.value().size());
  std::size_t index = 0;
  for (const Json& item : merges.value()) {
    const auto field = [&] { return JsonField(item, concat(merges.place(), "[", index, "]")); };
    if (item.is_array()) {
      if (item.size() != 2 || !item[0].is_string() || !item[1].is_string()) {
        field().refuse("wanted two tokens, found ", printable(item.dump(), 60));
      }
      add_merge(field, item[0].get_ref<const std::string&>(),
                item[1].get_ref<const std::string&>());
    } else if (!item.is_string()) {
      static_cast<void>(field().text());
    } else if (const auto& text = item.get_ref<const std::string&>();
               !text.starts_with("#version")) {
      const std::size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
        field().refuse("wanted two tokens with one space between them, found '",
                       printable(text, 60), "'; tokens that hold spaces must stand as a pair");
      }
      add_merge(field, text.substr(0, space), text.substr(space + 1));
    }
    ++index;
  }
}

template <class Field>
void ModelReader::add_merge(const Field& field, const std::string& left, const std::string& right) {
  const auto known = [&](const std::string& token) {
    const std::uint32_t id = find(token);
    if (id == kNoToken)
      field().refuse("token '", printable(token, 60), "' is not in the vocabulary");
    return id;
  };
  const std::uint32_t left_id = known(left);
  const std::uint32_t right_id = known(right);
  file_.merges.push_back({left_id, right_id, known(left + right)});
}

void ModelReader::read_byte_tokens(const JsonField& model) {
  bool complete = true;
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string token;
    append_utf8(token, byte_level_char(static_cast<std::uint8_t>(byte)));
    file_.bpe.byte_tokens[byte] = find(token);
    complete = complete && file_.bpe.byte_tokens[byte] != kNoToken;
  }
  if (const auto fallback = model.find("byte_fallback");
      fallback && fallback->boolean() && !complete) {
    fallback->refuse("is true and the vocabulary lacks byte-level tokens; not supported");
  }
  file_.bpe.fuse_unknown = model.boolean_or("fuse_unk", false);
  if (const auto unknown = model.find("unk_token")) {
    file_.bpe.unknown = find(unknown->text());
    if (file_.bpe.unknown == kNoToken && !complete) {
      unknown->refuse("'", printable(unknown->text()), "' is not in the vocabulary");
    }
  }
}

void ModelReader::read_added_tokens(const JsonField& tokens) {
  for (const JsonField& field : tokens.items()) {
    field.allow_keys({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    AddedToken token;
    token.id = field.at("id").id();
    token.content = field.at("content").text();
    token.single_word = field.at("single_word").boolean();
    token.lstrip = field.at("lstrip").boolean();
    token.rstrip = field.at("rstrip").boolean();
    token.normalized = field.at("normalized").boolean();
    token.special = field.at("special").boolean();
    add_token(field, std::move(token));
  }
}

void ModelReader::add_token(const JsonField& field, AddedToken token) {
  if (token.content.empty()) field.at("content").refuse("is empty");
  if (token.content.size() > kMaxAddedTokenBytes) {
    field.at("content").refuse("has ", token.content.size(), " bytes, at most ",
                               kMaxAddedTokenBytes, " are allowed");
  }
  if (!added_.insert(token.content).second) {
    field.refuse("'", printable(token.content), "' is there twice");
  }
  // Loaders number the tokens themselves: by the vocabulary, or else in order behind it.
  const std::uint32_t in_vocabulary = find(token.content);
  const std::uint32_t id = in_vocabulary != kNoToken ? in_vocabulary : next_added_id_;
  if (token.id != id) {
    field.at("id").refuse("'", printable(token.content), "' has id ", token.id, ", wanted ", id,
                          in_vocabulary != kNoToken ? " as in model.vocab" : ", the next free one");
  }
  next_added_id_ = std::max(next_added_id_, id + 1);
  if (id >= file_.tokens.size()) file_.tokens.resize(id + std::size_t{1});
  if (in_vocabulary == kNoToken && !file_.tokens[id].empty()) {
    field.at("id").refuse("id ", id, " is another token's in model.vocab");
  }
  file_.tokens[id] = token.content;
  file_.added.push_back(std::move(token));
}

}  // namespace lockstep
