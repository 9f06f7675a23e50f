#include "tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "tokenizer/byte_level.h"

namespace lockstep {
namespace {

bool is_delimiter(const SplitStage& stage, char32_t code) {
  switch (stage.delimiter) {
    case SplitStage::Delimiter::kNumber:
      return char_classes()[code] == CharClass::kNumber;
    case SplitStage::Delimiter::kPunctuation:
      return is_punctuation_8(code);
    case SplitStage::Delimiter::kWhiteSpace:
      return is_white_space(code);
    case SplitStage::Delimiter::kCharacter:
      return code == stage.character;
    case SplitStage::Delimiter::kPattern:
      break;
  }
  return false;
}

void find_spans(const SplitStage& stage, std::string_view text, std::vector<Span>& spans) {
  if (stage.delimiter == SplitStage::Delimiter::kPattern) {
    return stage.pattern->find_all(text, spans);
  }
  std::size_t rest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = code_point_at(text, at);
    if (is_delimiter(stage, code)) {
      if (rest < at) spans.push_back({rest, at, false});
      spans.push_back({at, at + bytes, true});
      rest = at + bytes;
    }
    at += bytes;
  }
  if (rest < text.size()) spans.push_back({rest, text.size(), false});
}

// The pieces of `text` that the stage keeps.
void split_piece(const SplitStage& stage, std::string_view text, std::vector<Span>& spans) {
  spans.clear();
  find_spans(stage, text, spans);
  apply_split(stage.behavior, stage.invert, spans);
}

// The same for a stage that sees the byte-level alphabet: one of its characters is a byte of
// `text`.
void split_byte_level(const SplitStage& stage, std::string_view text, std::vector<Span>& spans) {
  const std::string mapped = to_byte_level(text);
  split_piece(stage, mapped, spans);
  std::size_t position = 0;
  std::size_t byte = 0;
  const auto byte_at = [&](std::size_t wanted) {
    for (; position < wanted; ++byte) position += code_point_at(mapped, position).bytes;
    return byte;
  };
  for (Span& span : spans) {
    span.begin = byte_at(span.begin);
    span.end = byte_at(span.end);
  }
}

bool keeps_every_match(const SplitStage& stage) {
  return stage.behavior == SplitBehavior::kIsolated ||
         (stage.behavior == SplitBehavior::kRemoved && stage.invert);
}

}  // namespace

void apply_split(SplitBehavior behavior, bool invert, std::vector<Span>& spans) {
  if (invert) {
    for (Span& span : spans) span.match = !span.match;
  }
  std::vector<Span> kept;
  kept.reserve(spans.size());
  bool previous = false;
  const auto keep_forward = [&](auto joins) {
    for (const Span& span : spans) {
      if (!kept.empty() && joins(span.match, previous)) {
        kept.back().end = span.end;
      } else {
        kept.push_back(span);
      }
      previous = span.match;
    }
  };
  switch (behavior) {
    case SplitBehavior::kIsolated:
      kept = spans;
      break;
    case SplitBehavior::kRemoved:
      std::copy_if(spans.begin(), spans.end(), std::back_inserter(kept),
                   [](const Span& span) { return !span.match; });
      break;
    case SplitBehavior::kContiguous:
      keep_forward([](bool match, bool before) { return match == before; });
      break;
    case SplitBehavior::kMergedWithPrevious:
      keep_forward([](bool match, bool before) { return match && !before; });
      break;
    case SplitBehavior::kMergedWithNext:
      for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
        if (!kept.empty() && span->match && !previous) {
          kept.back().begin = span->begin;
        } else {
          kept.push_back(*span);
        }
        previous = span->match;
      }
      std::reverse(kept.begin(), kept.end());
      break;
  }
  std::erase_if(kept, [](const Span& span) { return span.begin == span.end; });
  spans = std::move(kept);
}

PreTokenizer::PreTokenizer(std::vector<SplitStage> before, ByteLevelStage byte_level,
                           std::vector<SplitStage> after)
    : before_(std::move(before)), byte_level_(std::move(byte_level)), after_(std::move(after)) {
  if (!after_.empty() || byte_level_.add_prefix_space) return;
  if (before_.empty() && byte_level_.pattern) known_ = byte_level_.pattern->known();
  if (before_.size() == 1 && !byte_level_.pattern && before_[0].pattern &&
      keeps_every_match(before_[0])) {
    known_ = before_[0].pattern->known();
  }
}

void PreTokenizer::split(std::string_view text, Pieces& pieces) const {
  std::vector<Span> spans;
  std::vector<std::string_view> current;
  if (!text.empty()) current.push_back(text);
  std::vector<std::string_view> next;
  const auto refine = [&](auto&& find) {
    next.clear();
    for (const std::string_view piece : current) {
      find(piece);
      for (const Span& span : spans)
        next.push_back(piece.substr(span.begin, span.end - span.begin));
    }
    current.swap(next);
  };
  for (const SplitStage& stage : before_) {
    refine([&](std::string_view piece) { split_piece(stage, piece, spans); });
  }
  if (byte_level_.add_prefix_space) {
    for (std::string_view& piece : current) {
      if (piece.front() != ' ') piece = pieces.owned.emplace_back(" " + std::string(piece));
    }
  }
  if (byte_level_.pattern) {
    refine([&](std::string_view piece) {
      spans.clear();
      byte_level_.pattern->find_all(piece, spans);
      apply_split(SplitBehavior::kIsolated, false, spans);
    });
  }
  for (const SplitStage& stage : after_) {
    refine([&](std::string_view piece) { split_byte_level(stage, piece, spans); });
  }
  pieces.views = std::move(current);
}

}  // namespace lockstep
