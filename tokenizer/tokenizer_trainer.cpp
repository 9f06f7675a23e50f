#include "tokenizer/tokenizer_trainer.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "tokenizer/bpe_trainer.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/unicode.h"

namespace lockstep {
namespace {

constexpr std::uint32_t kMaxVocabulary = 1U << 24U;

void check(const TokenizerTraining& training) {
  std::unordered_set<std::string> seen;
  for (const std::string& token : training.special_tokens) {
    if (token.empty() || !is_valid_utf8(token)) {
      fail(ErrorKind::kConfig, "special token '", printable(token),
           "' is empty or not valid UTF-8");
    }
    if (!seen.insert(token).second) {
      fail(ErrorKind::kConfig, "special token '", printable(token), "' is there twice");
    }
    if (const auto bytes = from_byte_level(token); bytes && bytes->size() == 1) {
      fail(ErrorKind::kConfig, "special token '", printable(token), "' stands for a byte already");
    }
  }
  const std::size_t least = 256 + training.special_tokens.size();
  if (training.vocab_size < least || training.vocab_size > kMaxVocabulary) {
    fail(ErrorKind::kConfig, "vocab_size is ", training.vocab_size, ", wanted ", least,
         " (256 bytes and ", training.special_tokens.size(), " special tokens) to ",
         kMaxVocabulary);
  }
}

// All tokens of the model by id, in the byte-level alphabet; special tokens as they are.
std::vector<std::string> number_bytes(const TokenizerTraining& training,
                                      std::array<std::uint32_t, 256>& byte_ids) {
  std::vector<std::string> tokens = training.special_tokens;
  std::array<unsigned, 256> bytes{};
  std::iota(bytes.begin(), bytes.end(), 0U);
  const auto char_of = [](unsigned byte) {
    return byte_level_char(static_cast<std::uint8_t>(byte));
  };
  std::sort(bytes.begin(), bytes.end(),
            [&](unsigned a, unsigned b) { return char_of(a) < char_of(b); });
  for (const unsigned byte : bytes) {
    byte_ids[byte] = static_cast<std::uint32_t>(tokens.size());
    append_utf8(tokens.emplace_back(), char_of(byte));
  }
  return tokens;
}

OrderedJson added_tokens(const std::vector<std::string>& special_tokens) {
  OrderedJson added = OrderedJson::array();
  for (const std::string& token : special_tokens) {
    added.push_back({{"id", added.size()},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  return added;
}

OrderedJson byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

OrderedJson model_json(std::vector<std::string>& tokens, const std::vector<BpeMerge>& merges) {
  OrderedJson merge_list = OrderedJson::array();
  for (const BpeMerge& merge : merges) {
    if (merge.result == tokens.size()) tokens.push_back(tokens[merge.left] + tokens[merge.right]);
    merge_list.push_back(tokens[merge.left] + " " + tokens[merge.right]);
  }
  // Filled directly: looking up every key of an ordered object would take quadratic time.
  OrderedJson::object_t vocabulary;
  vocabulary.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    static_cast<std::vector<OrderedJson::object_t::value_type>&>(vocabulary)
        .emplace_back(tokens[id], id);
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", OrderedJson(std::move(vocabulary))},
          {"merges", std::move(merge_list)}};
}

}  // namespace

std::string train_tokenizer(const DocumentSource& documents, const TokenizerTraining& training,
                            ThreadPool& pool) {
  check(training);
  const std::string regex = training.pattern.empty()
                                ? std::string(pattern_text(KnownPattern::kCl100k))
                                : training.pattern;
  const Pattern pattern(regex, "tokenizer training: pattern");
  std::uint64_t bytes_counted = 0;
  const auto words = count_words(documents, pattern, pool, [&](std::uint64_t bytes) {
    bytes_counted = bytes;
    if (training.progress) training.progress(bytes, 0);
  });
  MergeTraining merging;
  std::vector<std::string> tokens = number_bytes(training, merging.byte_ids);
  merging.first_id = static_cast<std::uint32_t>(tokens.size());
  merging.max_new_tokens = training.vocab_size - tokens.size();
  merging.min_frequency = training.min_frequency;
  for (const std::string& token : training.special_tokens) {
    if (auto bytes = from_byte_level(token)) merging.forbidden.push_back(*std::move(bytes));
  }
  if (training.progress) {
    merging.progress = [&](std::size_t made) {
      training.progress(bytes_counted, static_cast<std::uint32_t>(made));
    };
  }
  const std::vector<BpeMerge> merges = learn_merges(words, merging);

  OrderedJson split = {{"type", "Split"}, {"behavior", "Isolated"}, {"invert", false}};
  split["pattern"] = {{"Regex", regex}};
  OrderedJson document = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  document["added_tokens"] = added_tokens(training.special_tokens);
  document["normalizer"] = nullptr;
  document["pre_tokenizer"] = {{"type", "Sequence"}};
  document["pre_tokenizer"]["pretokenizers"] = OrderedJson::array({split, byte_level(false)});
  document["post_processor"] = nullptr;
  document["decoder"] = byte_level(true);
  document["model"] = model_json(tokens, merges);
  return document.dump(1) + "\n";
}

}  // namespace lockstep
