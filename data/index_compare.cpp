#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/index.h"

namespace lockstep {

namespace {

void compare_specs(const IndexSpec& saved, const IndexSpec& found, std::vector<std::string>& out) {
  if (saved.sequence_length != found.sequence_length) {
    out.push_back(concat("sequence length ", saved.sequence_length, " -> ", found.sequence_length));
  }
  if (saved.width != found.width) {
    out.push_back(concat("token type ", name_of(saved.width), " -> ", name_of(found.width)));
  }
  if (saved.tokenizer != found.tokenizer) {
    out.push_back(
        concat("tokenizer ", printable(saved.tokenizer), " -> ", printable(found.tokenizer)));
  }
}

void compare_files(const IndexFile& saved, const IndexFile& found, std::size_t number,
                   std::vector<std::string>& out) {
  if (saved.path != found.path) {
    out.push_back(
        concat("file ", number, ": ", printable(saved.path), " -> ", printable(found.path)));
  } else if (saved.tokens != found.tokens) {
    out.push_back(
        concat(printable(saved.path), ": ", saved.tokens, " -> ", found.tokens, " tokens"));
  } else if (saved.label != found.label) {
    out.push_back(concat(printable(saved.path), ": label ", printable(saved.label), " -> ",
                         printable(found.label)));
  } else if (!saved.digest.empty() && !found.digest.empty() && saved.digest != found.digest) {
    out.push_back(concat(printable(saved.path), ": other tokens than before (digest ", saved.digest,
                         " -> ", found.digest, ")"));
  }
}

}  // namespace

std::vector<std::string> index_differences(const DataIndex& saved, const DataIndex& found,
                                           std::size_t limit) {
  std::vector<std::string> all;
  compare_specs(saved.spec(), found.spec(), all);
  const auto& before = saved.files();
  const auto& now = found.files();
  if (before.size() != now.size()) {
    all.push_back(concat(before.size(), " -> ", now.size(), " files"));
  }
  for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
    compare_files(before[i], now[i], i, all);
  }
  if (all.size() > limit) {
    const std::size_t more = all.size() - limit;
    all.resize(limit);
    all.push_back(concat("and ", more, " more"));
  }
  return all;
}

DataIndex open_index(FileSystem& fs, const IndexSpec& spec, std::span<const MixEntry> mix,
                     const std::string& saved_path, ThreadPool& pool) {
  if (!fs.exists(saved_path)) {
    DataIndex index = DataIndex::build(fs, spec, mix, pool);
    index.save(fs, saved_path);
    return index;
  }
  const DataIndex saved = DataIndex::load(fs, saved_path, spec.base_directory);
  const bool digests = std::any_of(saved.files().begin(), saved.files().end(),
                                   [](const IndexFile& file) { return !file.digest.empty(); });
  DataIndex found =
      DataIndex::build(fs, spec, mix, pool, digests ? ContentDigest::kYes : ContentDigest::kNo);
  const auto differences = index_differences(saved, found);
  if (differences.empty()) return found;
  std::string text;
  for (const std::string& one : differences) text += (text.empty() ? "" : "; ") + one;
  fail(ErrorKind::kData, "the data are not those of ", printable(saved_path), ": ", text,
       "; restore them, or start a new run");
}

}  // namespace lockstep
