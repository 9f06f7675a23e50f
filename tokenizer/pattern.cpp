#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/pattern.h"

#include <pcre2.h>

#include <array>
#include <cstdint>

#include "base/error.h"
#include "base/text.h"
#include "tokenizer/regex_translation.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxPatternBytes = 65536;
// Backtracking steps of one match, and KiB of its heap: far above what any sane pattern needs on a
// line of text, and below a second.
constexpr std::uint32_t kMatchLimit = 10'000'000;
constexpr std::uint32_t kHeapLimitKib = 256 * 1024;

std::string error_text(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

template <KnownPattern kPattern>
void scan(std::string_view text, std::vector<Span>& spans) {
  const Scanner<kPattern> scanner(text);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = scanner.next(begin);
    spans.push_back({begin, end, true});
    begin = end;
  }
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeCompileContext {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

}  // namespace

struct Pattern::Compiled {
  std::unique_ptr<pcre2_code, FreeCode> code;
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context;
  std::string what;
};

Pattern::Pattern() = default;
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

Pattern::Pattern(std::string_view regex, std::string_view what)
    : known_(find_known_pattern(regex)) {
  if (!known_) compile(regex, what);
}

Pattern Pattern::with_pcre2(std::string_view regex, std::string_view what) {
  Pattern pattern;
  pattern.compile(regex, what);
  return pattern;
}

void Pattern::compile(std::string_view regex, std::string_view what) {
  if (regex.size() > kMaxPatternBytes) {
    fail(ErrorKind::kInput, what, ": the pattern has ", regex.size(), " bytes, at most ",
         kMaxPatternBytes, " are allowed");
  }
  const std::string translated = translate_regex(regex, what);
  const std::unique_ptr<pcre2_compile_context, FreeCompileContext> context(
      pcre2_compile_context_create(nullptr));
  LOCKSTEP_CHECK(context != nullptr, "out of memory");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  compiled_ = std::make_unique<Compiled>();
  compiled_->what = what;
  compiled_->code.reset(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get()));
  if (compiled_->code == nullptr) {
    fail(ErrorKind::kInput, what, ": the pattern is not usable (", error_text(error),
         "): ", printable(regex));
  }
  // Without JIT on this machine the interpreter runs; the result is the same.
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);
  compiled_->context.reset(pcre2_match_context_create(nullptr));
  LOCKSTEP_CHECK(compiled_->context != nullptr, "out of memory");
  pcre2_set_match_limit(compiled_->context.get(), kMatchLimit);
  pcre2_set_heap_limit(compiled_->context.get(), kHeapLimitKib);
}

void Pattern::find_all(std::string_view text, std::vector<Span>& spans) const {
  if (!known_) return find_all_pcre2(text, spans);
  switch (*known_) {
    case KnownPattern::kGpt2:
      return scan<KnownPattern::kGpt2>(text, spans);
    case KnownPattern::kCl100k:
      return scan<KnownPattern::kCl100k>(text, spans);
    case KnownPattern::kCl100kOneDigit:
      return scan<KnownPattern::kCl100kOneDigit>(text, spans);
  }
}

void Pattern::find_all_pcre2(std::string_view text, std::vector<Span>& spans) const {
  const std::unique_ptr<pcre2_match_data, FreeMatchData> data(pcre2_match_data_create(1, nullptr));
  LOCKSTEP_CHECK(data != nullptr, "out of memory");
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data.get());
  std::size_t previous = 0;  // the end of the last match
  std::optional<std::size_t> last_match_end;
  std::size_t at = 0;
  while (at <= text.size()) {
    const auto match = [&](std::uint32_t options) {
      return pcre2_match(compiled_->code.get(), subject, text.size(), at,
                         PCRE2_NO_UTF_CHECK | options, data.get(), compiled_->context.get());
    };
    int result = match(0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = match(PCRE2_NO_JIT);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      fail(ErrorKind::kInput, compiled_->what, ": the pattern gives up at byte ", at,
           " of a text of ", text.size(), " bytes (", error_text(result), ")");
    }
    const std::size_t begin = bounds[0];
    const std::size_t end = bounds[1];
    if (begin == end && last_match_end == end) {
      // An empty match right behind the last one would repeat for ever.
      if (at >= text.size()) break;
      at += code_point_at(text, at).bytes;
      continue;
    }
    if (previous != begin) spans.push_back({previous, begin, false});
    spans.push_back({begin, end, true});
    previous = at = end;
    last_match_end = end;
  }
  if (previous != text.size()) spans.push_back({previous, text.size(), false});
}

}  // namespace lockstep
