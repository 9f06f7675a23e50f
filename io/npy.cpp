#include "io/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = std::size_t{1} << 16;

// The header's Python dictionary: only what a plain array's can hold.
class Literal {
 public:
  Literal(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  NpyHeader parse() {
    NpyHeader header;
    bool order = false;
    bool shape = false;
    expect('{');
    while (!accept('}')) {
      const auto key = quoted();
      expect(':');
      if (key == "descr" && header.element_bytes == 0) {
        header.element_bytes = element_bytes(quoted());
      } else if (key == "fortran_order" && !order) {
        order = true;
        if (!accept_word("False")) reject("fortran_order is not False");
      } else if (key == "shape" && !shape) {
        shape = true;
        header.elements = one_dimension();
      } else {
        reject("key '" + printable(key, 40) + "' is unknown or given twice");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!rest_.empty()) reject("text follows the dictionary");
    if (header.element_bytes == 0 || !order || !shape) {
      reject("descr, fortran_order or shape is missing");
    }
    return header;
  }

 private:
  [[noreturn]] void reject(const std::string& why) const {
    fail(ErrorKind::kInput, printable(file_), ": NumPy header: ", why,
         "; wanted {'descr': '<u4' or '<u2', 'fortran_order': False, 'shape': (N,)}");
  }

  void skip_space() {
    while (!rest_.empty() && std::string_view(" \t\n\r").find(rest_[0]) != std::string_view::npos) {
      rest_.remove_prefix(1);
    }
  }

  bool accept(char wanted) {
    skip_space();
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool accept_word(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) {
      reject(concat("'", wanted, "' is wanted before '", printable(rest_, 20), "'"));
    }
  }

  std::string_view quoted() {
    skip_space();
    const char quote = rest_.empty() ? '\0' : rest_[0];
    if (quote != '\'' && quote != '"') reject("a quoted string is wanted");
    const auto end = rest_.find(quote, 1);
    if (end == std::string_view::npos) reject("a string has no end");
    const auto text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::uint64_t element_bytes(std::string_view descr) const {
    if (descr == "<u4") return 4;
    if (descr == "<u2") return 2;
    reject("descr is '" + printable(descr, 40) + "'");
  }

  std::uint64_t one_dimension() {
    expect('(');
    skip_space();
    std::uint64_t elements = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), elements);
    if (error != std::errc{}) reject("shape is not one whole number of 64 bits");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    expect(',');
    if (!accept(')')) reject("shape has more than one dimension");
    return elements;
  }

  std::string_view rest_;
  const std::string& file_;
};

std::uint64_t little_endian(std::span<const unsigned char> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | bytes[i];
  return value;
}

}  // namespace

std::optional<NpyHeader> parse_npy_header(const InputFile& file) {
  std::array<unsigned char, 12> start{};
  const auto known = std::min<std::uint64_t>(start.size(), file.size());
  file.read_at(0, std::as_writable_bytes(std::span(start)).first(known));
  if (known < kMagic.size() || std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    return std::nullopt;
  }
  const auto cut_off = [&](std::uint64_t wanted) {
    fail(ErrorKind::kData, printable(file.name()), " is cut off: ", file.size(),
         " bytes, but its NumPy header takes ", wanted);
  };
  if (known < 10) cut_off(10);
  const unsigned version = start[6];
  if (version < 1 || version > 3 || start[7] != 0) {
    fail(ErrorKind::kInput, printable(file.name()), ": NumPy format version ", version, ".",
         unsigned{start[7]}, " is not known; versions 1.0, 2.0 and 3.0 are");
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t before = 8 + length_bytes;
  if (known < before) cut_off(before);
  const auto length = little_endian(std::span(start).subspan(8, length_bytes));
  if (length > kMaxHeader) {
    fail(ErrorKind::kInput, printable(file.name()), ": NumPy header of ", length,
         " bytes; at most ", kMaxHeader, " are allowed");
  }
  if (before + length > file.size()) cut_off(before + length);
  std::string text(length, '\0');
  file.read_at(before, std::as_writable_bytes(std::span(text)));
  auto header = Literal(text, file.name()).parse();
  header.payload_offset = before + length;
  const auto payload = file.size() - header.payload_offset;
  if (payload % header.element_bytes != 0 || payload / header.element_bytes != header.elements) {
    fail(ErrorKind::kData, printable(file.name()), ": the NumPy header promises ", header.elements,
         " elements of ", header.element_bytes, " bytes, but ", payload, " bytes follow it");
  }
  return header;
}

}  // namespace lockstep
