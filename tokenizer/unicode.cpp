#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "tokenizer/unicode_changes.h"

namespace lockstep {
namespace {

constexpr char32_t kCodePoints = 0x110000;

struct Range {
  char32_t first;
  char32_t last;
};

constexpr Range kWhiteSpace[] = {
    {0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

// Category P that Unicode gained after 8.0.
constexpr Range kPunctuationSince8[] = {
    {0x61d, 0x61d},     {0x9fd, 0x9fd},     {0xa76, 0xa76},     {0xc77, 0xc77},
    {0xc84, 0xc84},     {0x1b4e, 0x1b4f},   {0x1b7d, 0x1b7f},   {0x2e43, 0x2e4f},
    {0x2e52, 0x2e5d},   {0x10d6e, 0x10d6e}, {0x10ead, 0x10ead}, {0x10f55, 0x10f59},
    {0x10f86, 0x10f89}, {0x113d4, 0x113d5}, {0x113d7, 0x113d8}, {0x1144b, 0x1144f},
    {0x1145a, 0x1145b}, {0x1145d, 0x1145d}, {0x11660, 0x1166c}, {0x116b9, 0x116b9},
    {0x1183b, 0x1183b}, {0x11944, 0x11946}, {0x119e2, 0x119e2}, {0x11a3f, 0x11a46},
    {0x11a9a, 0x11a9c}, {0x11a9e, 0x11aa2}, {0x11b00, 0x11b09}, {0x11be1, 0x11be1},
    {0x11c41, 0x11c45}, {0x11c70, 0x11c71}, {0x11ef7, 0x11ef8}, {0x11f43, 0x11f4f},
    {0x11fff, 0x11fff}, {0x12ff1, 0x12ff2}, {0x16d6d, 0x16d6f}, {0x16e97, 0x16e9a},
    {0x16fe2, 0x16fe2}, {0x1e5ff, 0x1e5ff}, {0x1e95e, 0x1e95f}};

// Alphabetic code points of category So (PropList's Other_Alphabetic).
constexpr Range kAlphabeticSymbols[] = {
    {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};

template <std::size_t N>
bool contains(const Range (&ranges)[N], char32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const Range& r) { return code >= r.first && code <= r.last; });
}

std::vector<CharClass> make_char_classes() {
  std::vector<CharClass> classes(kCodePoints, CharClass::kOther);
  for (char32_t code = 0; code < kCodePoints; ++code) {
    const char major = general_category(code)[0];
    if (major == 'L') classes[code] = CharClass::kLetter;
    if (major == 'N') classes[code] = CharClass::kNumber;
  }
  for (const Range& range : kWhiteSpace) {
    std::fill(classes.begin() + range.first, classes.begin() + range.last + 1, CharClass::kSpace);
  }
  classes['\r'] = classes['\n'] = CharClass::kNewline;
  return classes;
}

// The length of the well-formed sequence at the start (0: none), and of the maximal ill-formed
// part.
struct Sequence {
  std::size_t valid;
  std::size_t ill_formed;
};

Sequence read_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, 0};
  if (lead < 0xc2 || lead > 0xf4) return {0, 1};
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {0, i};
    low = 0x80;
    high = 0xbf;
  }
  return {length, 0};
}

constexpr auto kNfcOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

std::vector<utf8proc_int32_t> decompose(std::string_view text) {
  constexpr utf8proc_ssize_t kMost = 16;  // a canonical decomposition has at most 4 code points
  std::array<utf8proc_int32_t, kMost> parts{};
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = code_point_at(text, at);
    at += bytes;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(code), parts.data(), kMost, kNfcOptions, nullptr);
    LOCKSTEP_CHECK(count >= 0 && count <= kMost, "code point ", static_cast<std::uint32_t>(code));
    codes.insert(codes.end(), parts.begin(), parts.begin() + count);
  }
  return codes;
}

// The canonical order of each run of marks. The library's own takes quadratic time for long runs.
void sort_marks(std::vector<utf8proc_int32_t>& codes) {
  const auto order = [](utf8proc_int32_t code) {
    return utf8proc_get_property(code)->combining_class;
  };
  for (auto begin = codes.begin(); begin != codes.end();) {
    if (order(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, codes.end(), [&](auto code) { return order(code) == 0; });
    std::stable_sort(begin, end, [&](auto a, auto b) { return order(a) < order(b); });
    begin = end;
  }
}

std::size_t ascii_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at + 8 <= text.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080U) != 0) break;
    at += 8;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace

const CharClass* char_classes() {
  static const std::vector<CharClass> classes = make_char_classes();
  return classes.data();
}

std::string_view general_category(char32_t code) {
  const auto changes = category_changes_since_14();
  const auto found = std::partition_point(changes.begin(), changes.end(),
                                          [&](const CategoryChange& c) { return c.last < code; });
  if (found != changes.end() && code >= found->first) return found->category;
  return utf8proc_category_string(static_cast<utf8proc_int32_t>(code));
}

bool is_white_space(char32_t code) { return contains(kWhiteSpace, code); }

bool is_word_char(char32_t code) {
  const std::string_view category = general_category(code);
  return category[0] == 'L' || category[0] == 'M' || category == "Nd" || category == "Nl" ||
         category == "Pc" || code == 0x200c || code == 0x200d || contains(kAlphabeticSymbols, code);
}

bool is_punctuation_8(char32_t code) {
  if (code < 0x80) {
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') ||
           (code >= '[' && code <= '`') || (code >= '{' && code <= '~');
  }
  if (code == 0x166d || code == 0x111c9) return true;  // moved to other categories after 8.0
  return general_category(code)[0] == 'P' && !contains(kPunctuationSince8, code);
}

CodePoint code_point_before(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U) --at;
  return code_point_at(text, at);
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) {
    out += static_cast<char>(static_cast<unsigned char>(byte));
  };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0U | (code >> 6U));
    put(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    put(0xe0U | (code >> 12U));
    put(0x80U | ((code >> 6U) & 0x3fU));
    put(0x80U | (code & 0x3fU));
  } else {
    put(0xf0U | (code >> 18U));
    put(0x80U | ((code >> 12U) & 0x3fU));
    put(0x80U | ((code >> 6U) & 0x3fU));
    put(0x80U | (code & 0x3fU));
  }
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (true) {
    at += ascii_prefix(text.substr(at));
    if (at == text.size()) return std::nullopt;
    while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80) {
      const std::size_t length = read_sequence(text.substr(at)).valid;
      if (length == 0) return at;
      at += length;
    }
  }
}

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Sequence sequence = read_sequence(text);
    if (sequence.valid > 0) {
      out += text.substr(0, sequence.valid);
    } else {
      out += "\xef\xbf\xbd";
    }
    text.remove_prefix(sequence.valid + sequence.ill_formed);
  }
  return out;
}

char32_t to_lower_case(char32_t code) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

char32_t to_title_case(char32_t code) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code)));
}

std::string to_nfc(std::string_view text) {
  // Nothing below U+0300 changes, and no byte below 0xcc starts more.
  const auto is_low = [](char c) { return static_cast<unsigned char>(c) < 0xcc; };
  if (std::all_of(text.begin(), text.end(), is_low)) return std::string(text);
  std::vector<utf8proc_int32_t> codes = decompose(text);
  sort_marks(codes);
  const utf8proc_ssize_t count = utf8proc_normalize_utf32(
      codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), kNfcOptions);
  LOCKSTEP_CHECK(count >= 0, utf8proc_errmsg(count));
  std::string out;
  out.reserve(text.size());
  codes.resize(static_cast<std::size_t>(count));
  for (const utf8proc_int32_t code : codes) append_utf8(out, static_cast<char32_t>(code));
  return out;
}

}  // namespace lockstep
