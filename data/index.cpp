#include "data/index.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "data/json_field.h"

namespace lockstep {

namespace {

constexpr std::uint64_t kFormatVersion = 1;
constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{256} << 20U;
constexpr std::size_t kDigestPiece = std::size_t{1} << 20U;

std::string content_digest(FileSystem& fs, const std::string& path) {
  const auto file = fs.open_input(path);
  std::vector<std::byte> piece(kDigestPiece);
  Hasher128 hasher;
  for (std::uint64_t offset = 0; offset < file->size(); offset += kDigestPiece) {
    const auto bytes =
        std::span(piece).first(std::min<std::uint64_t>(kDigestPiece, file->size() - offset));
    file->read_at(offset, bytes);
    hasher.add(bytes.data(), bytes.size());
  }
  return hasher.hex();
}

std::string fingerprint_of(const IndexSpec& spec, std::span<const IndexFile> files) {
  Hasher128 hasher;
  const auto add_text = [&](std::string_view text) {
    hasher.add_value<std::uint64_t>(text.size());
    hasher.add(text);
  };
  add_text("lockstep instance index 1");
  hasher.add_value(spec.sequence_length);
  add_text(name_of(spec.width));
  add_text(spec.tokenizer);
  for (const IndexFile& file : files) {
    add_text(file.path);
    add_text(file.label);
    hasher.add_value(file.tokens);
    add_text(file.digest);
  }
  return hasher.hex();
}

IndexFile parse_file(const Json& json, const std::string& what) {
  return {.label = string_field(json, "label", what),
          .path = string_field(json, "path", what),
          .tokens = unsigned_field(json, "n_tokens", what),
          .digest = string_field(json, "xxh128", what)};
}

}  // namespace

DataIndex::DataIndex(IndexSpec spec, std::vector<IndexFile> files)
    : spec_(std::move(spec)), files_(std::move(files)) {
  if (spec_.sequence_length == 0) fail(ErrorKind::kConfig, "data index: sequence length 0");
  for (IndexFile& file : files_) {
    file.instances = file.tokens / spec_.sequence_length;
    file.first_instance = instances_;
    instances_ += file.instances;
    tokens_ += file.tokens;
  }
  fingerprint_ = fingerprint_of(spec_, files_);
}

DataIndex DataIndex::build(FileSystem& fs, const IndexSpec& spec, std::span<const MixEntry> mix,
                           ThreadPool& pool, ContentDigest digest) {
  std::vector<IndexFile> files(mix.size());
  pool.parallel_for(static_cast<std::int64_t>(mix.size()), [&](std::int64_t i, int) {
    const MixEntry& entry = mix[static_cast<std::size_t>(i)];
    IndexFile& file = files[static_cast<std::size_t>(i)];
    const std::string path = join_path(spec.base_directory, entry.path);
    file.label = entry.label;
    file.path = entry.path;
    file.tokens = TokenFile(fs, path, spec.width).tokens();
    if (digest == ContentDigest::kYes) file.digest = content_digest(fs, path);
  });
  return {spec, std::move(files)};
}

DataIndex DataIndex::load(FileSystem& fs, const std::string& path,
                          const std::string& base_directory) {
  const Json json = parse_json(read_file(fs, path, kMaxIndexBytes), path);
  const auto version = unsigned_field(json, "format_version", path);
  if (version != kFormatVersion) {
    fail(ErrorKind::kData, printable(path), ": index format ", version,
         " where this program reads ", kFormatVersion, "; build the index again");
  }
  IndexSpec spec = {.sequence_length = unsigned_field(json, "sequence_length", path),
                    .width = token_width_of_name(string_field(json, "dtype", path)),
                    .tokenizer = string_field(json, "tokenizer", path),
                    .base_directory = base_directory};
  const Json& list = field(json, "files", path);
  if (!list.is_array()) fail(ErrorKind::kData, printable(path), ": 'files' is no list");
  std::vector<IndexFile> files;
  files.reserve(list.size());
  for (const Json& file : list) files.push_back(parse_file(file, path));
  DataIndex index(std::move(spec), std::move(files));
  const std::string wanted = string_field(json, "fingerprint", path);
  if (wanted != index.fingerprint()) {
    fail(ErrorKind::kData, printable(path), ": its contents have fingerprint ", index.fingerprint(),
         " where it says ", printable(wanted),
         ": the index is damaged; delete it to build it again");
  }
  return index;
}

void DataIndex::save(FileSystem& fs, const std::string& path) const {
  OrderedJson json = {{"format_version", kFormatVersion},
                      {"fingerprint", fingerprint_},
                      {"sequence_length", spec_.sequence_length},
                      {"dtype", name_of(spec_.width)},
                      {"tokenizer", spec_.tokenizer},
                      {"total_instances", instances_},
                      {"total_tokens", tokens_},
                      {"files", OrderedJson::array()}};
  for (const IndexFile& file : files_) {
    json["files"].push_back({{"path", file.path},
                             {"label", file.label},
                             {"n_tokens", file.tokens},
                             {"n_instances", file.instances},
                             {"instance_offset", file.first_instance},
                             {"xxh128", file.digest}});
  }
  write_file_atomic(fs, path, json.dump(1) + "\n");
}

InstancePlace DataIndex::place(std::uint64_t id) const {
  LOCKSTEP_CHECK(id < instances_, "instance ", id, " of ", instances_);
  // The last file that starts at or before id; files without instances start where the next does.
  const auto after = std::upper_bound(
      files_.begin(), files_.end(), id,
      [](std::uint64_t wanted, const IndexFile& file) { return wanted < file.first_instance; });
  const auto file = std::prev(after);
  return {static_cast<std::size_t>(file - files_.begin()),
          (id - file->first_instance) * spec_.sequence_length};
}

std::string DataIndex::full_path(std::size_t i) const {
  return join_path(spec_.base_directory, files_.at(i).path);
}

}  // namespace lockstep
