#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/json.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

namespace lockstep {

// A small tokenizer.json: the 256 bytes have their value as id, merges make the ids behind, and
// added tokens come last. Tokens are given as bytes.
class SmallTokenizer {
 public:
  SmallTokenizer() {
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::string token;
      append_utf8(token, byte_level_char(static_cast<std::uint8_t>(byte)));
      json["model"]["vocab"][token] = byte;
    }
  }

  SmallTokenizer& Merge(const std::string& left, const std::string& right) {
    json["model"]["merges"].push_back(to_byte_level(left) + " " + to_byte_level(right));
    json["model"]["vocab"].emplace(to_byte_level(left + right), next_id());
    return *this;
  }
  SmallTokenizer& Add(const std::string& content, std::initializer_list<std::string> flags = {}) {
    Json token = {{"id", next_id() + json["added_tokens"].size()}, {"content", content}};
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized", "special"}) {
      token[flag] = std::find(flags.begin(), flags.end(), flag) != flags.end();
    }
    json["added_tokens"].push_back(token);
    return *this;
  }
  SmallTokenizer& PreTokenize(const std::string& components) {
    json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", Json::parse(components)}};
    return *this;
  }

  [[nodiscard]] Tokenizer Load() const { return Tokenizer::from_json(json.dump(), "small.json"); }

  Json json = Json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                      "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
              "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
              "ignore_merges": false, "vocab": {}, "merges": []}})");

 private:
  [[nodiscard]] std::size_t next_id() { return json["model"]["vocab"].size(); }
};

}  // namespace lockstep
