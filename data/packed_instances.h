#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "data/document_spans.h"
#include "data/index.h"
#include "data/instance_source.h"
#include "data/token_file_pool.h"

namespace lockstep {

struct PackingSpec {
  std::uint32_t end_of_text = 0;
  std::uint32_t padding = 0;  // id behind the documents of an instance
  Vocabulary vocabulary;
  // As OLMo-core: files are permuted by Python's random.Random(file_seed).shuffle, and each group
  // of this many is packed by itself.
  std::uint32_t file_seed = 123;
  std::size_t files_per_group = 8;
};

// Whole documents packed into instances for long contexts (OLMo-core's packed fixed-length data
// set): a document longer than L is cut there and the rest of it lost, the others are packed by
// best fit decreasing within their group of files (data/best_fit.h). Use with LeafRules'
// document_mask. Documents of equal length keep their order here, while OLMo-core's sort is not
// stable: which of them sit together may differ from there. Immutable, thread-safe. `fs` and
// `index` (its sequence length is L) must outlive it.
class PackedInstances final : public InstanceSource {
 public:
  // Finds the documents of every file (data/document_spans.h), groups in parallel. kData when there
  // is none, else as document_spans.
  PackedInstances(FileSystem& fs, const DataIndex& index, const PackingSpec& spec,
                  ThreadPool& pool);

  [[nodiscard]] std::uint64_t instances() const override { return first_piece_.size() - 1; }
  [[nodiscard]] std::uint64_t sequence_length() const override {
    return index_.spec().sequence_length;
  }
  [[nodiscard]] std::size_t read(std::uint64_t id, std::span<std::uint32_t> tokens) const override;
  [[nodiscard]] const std::vector<std::string>& labels() const override { return labels_; }
  // That of its first document.
  [[nodiscard]] std::size_t label_of(std::uint64_t id) const override;
  [[nodiscard]] const std::string& fingerprint() const override { return fingerprint_; }
  // Tokens lost by cutting long documents.
  [[nodiscard]] std::uint64_t lost_tokens() const { return lost_tokens_; }

 private:
  struct Piece {
    std::uint64_t begin;  // in its file
    std::uint32_t file;
    std::uint32_t length;
  };
  struct Group {
    std::vector<Piece> pieces;                     // in reading order
    std::vector<std::vector<std::uint32_t>> bins;  // indices into pieces
    std::uint64_t lost = 0;
  };
  [[nodiscard]] Group pack(FileSystem& fs, std::span<const std::size_t> files) const;
  void append(const Group& group);
  void set_labels();
  void set_fingerprint();

  const DataIndex& index_;
  PackingSpec spec_;
  mutable TokenFilePool files_;
  std::vector<Piece> pieces_;               // by instance
  std::vector<std::uint64_t> first_piece_;  // of each instance, and the end
  std::uint64_t lost_tokens_ = 0;
  std::vector<std::string> labels_;
  std::vector<std::size_t> label_of_file_;
  std::string fingerprint_;
};

}  // namespace lockstep
