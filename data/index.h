#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "data/mix.h"
#include "data/token_file.h"
#include "io/file.h"

namespace lockstep {

// What instances are cut from and how.
struct IndexSpec {
  std::uint64_t sequence_length = 0;  // L
  TokenWidth width = TokenWidth::k32;
  std::string tokenizer;       // fingerprint of the tokenizer that made the files
  std::string base_directory;  // where the mix's paths start
};

struct IndexFile {
  std::string label;
  std::string path;  // relative to the base directory
  std::uint64_t tokens = 0;
  std::uint64_t instances = 0;       // floor(tokens / L): the tail is dropped
  std::uint64_t first_instance = 0;  // global id of its instance 0
  std::string digest;                // hash of the token bytes; empty when not asked for
  friend bool operator==(const IndexFile&, const IndexFile&) = default;
};

struct InstancePlace {
  std::size_t file = 0;           // into DataIndex::files()
  std::uint64_t first_token = 0;  // in that file
};

enum class ContentDigest { kNo, kYes };

// The instances of a mix: file i holds floor(n_i / L) windows of L tokens, numbered through the
// files in manifest order; windows may cross documents, never files (OLMo-core's fixed sequence
// length data set). Immutable, thread-safe.
class DataIndex {
 public:
  // Opens every file (size and header; every byte with kYes, files in parallel). kConfig when L is
  // 0, else as TokenFile. May count no instance: who needs one refuses (FixedInstances).
  [[nodiscard]] static DataIndex build(FileSystem& fs, const IndexSpec& spec,
                                       std::span<const MixEntry> mix, ThreadPool& pool,
                                       ContentDigest digest = ContentDigest::kNo);
  // An index that save() wrote. kData when a field is missing or the fingerprint is not that of the
  // rest. Looks at no token file.
  [[nodiscard]] static DataIndex load(FileSystem& fs, const std::string& path,
                                      const std::string& base_directory);
  void save(FileSystem& fs, const std::string& path) const;

  [[nodiscard]] const IndexSpec& spec() const { return spec_; }
  [[nodiscard]] const std::vector<IndexFile>& files() const { return files_; }
  [[nodiscard]] std::uint64_t instances() const { return instances_; }
  [[nodiscard]] std::uint64_t tokens() const { return tokens_; }  // of the files, tails included
  // Over L, token type, tokenizer, and each file's path, label, tokens and digest: 32 hexadecimal
  // digits.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }

  // id < instances(); by binary search.
  [[nodiscard]] InstancePlace place(std::uint64_t id) const;
  // The path of file `i` as it can be opened.
  [[nodiscard]] std::string full_path(std::size_t i) const;

 private:
  DataIndex(IndexSpec spec, std::vector<IndexFile> files);

  IndexSpec spec_;
  std::vector<IndexFile> files_;
  std::uint64_t instances_ = 0;
  std::uint64_t tokens_ = 0;
  std::string fingerprint_;
};

// What differs, one line each, at most `limit` and then a count; empty when nothing does. Content
// digests are compared where both have them.
[[nodiscard]] std::vector<std::string> index_differences(const DataIndex& saved,
                                                         const DataIndex& found,
                                                         std::size_t limit = 8);

// The index of the mix as it is now, checked against `saved_path` when that exists (kData listing
// what differs; contents are compared when digests were saved) and saved there when not.
[[nodiscard]] DataIndex open_index(FileSystem& fs, const IndexSpec& spec,
                                   std::span<const MixEntry> mix, const std::string& saved_path,
                                   ThreadPool& pool);

}  // namespace lockstep
