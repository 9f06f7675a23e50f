#include "data/mix.h"

#include <map>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::uint64_t kMaxMixBytes = std::uint64_t{64} << 20U;
constexpr std::string_view kPlaceholder = "{TOKENIZER}";

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string expand(std::string_view path, std::string_view tokenizer) {
  std::string out;
  for (;;) {
    const auto at = path.find(kPlaceholder);
    out += path.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += tokenizer;
    path.remove_prefix(at + kPlaceholder.size());
  }
}

void check_path(const std::string& path, const std::string& where) {
  bool climbs = false;
  for (const std::string& part : split(path, '/')) climbs = climbs || part == "..";
  if (path.empty() || path.front() == '/' || climbs) {
    fail(ErrorKind::kInput, where, ": '", printable(path),
         "' is not a path below the mix's base directory");
  }
}

}  // namespace

std::vector<MixEntry> parse_mix(std::string_view text, std::string_view what,
                                std::string_view tokenizer) {
  std::vector<MixEntry> entries;
  std::map<std::string, std::uint64_t> line_of_path;
  std::uint64_t number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = concat(printable(what), " line ", number);
    const auto comma = line.find(',');
    const auto label = trim(line.substr(0, comma));
    const auto path =
        comma == std::string_view::npos ? std::string_view{} : trim(line.substr(comma + 1));
    if (label.empty() || path.empty()) {
      fail(ErrorKind::kInput, where, ": '", printable(line), "' is not label,path");
    }
    if (tokenizer.empty() && path.find(kPlaceholder) != std::string_view::npos) {
      fail(ErrorKind::kInput, where, ": the path holds {TOKENIZER} and no tokenizer name is set");
    }
    MixEntry entry = {std::string(label), expand(path, tokenizer)};
    check_path(entry.path, where);
    const auto [known, fresh] = line_of_path.emplace(entry.path, number);
    if (!fresh) {
      fail(ErrorKind::kInput, where, ": '", printable(entry.path), "' is in line ", known->second,
           " already; its instances would be seen twice an epoch");
    }
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) fail(ErrorKind::kInput, printable(what), ": the mix lists no file");
  return entries;
}

std::vector<MixEntry> read_mix(FileSystem& fs, const std::string& path,
                               std::string_view tokenizer) {
  return parse_mix(read_file(fs, path, kMaxMixBytes), path, tokenizer);
}

}  // namespace lockstep
