#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/document_spans.h"
#include "data/instance_source.h"
#include "data/mix.h"

namespace lockstep {

struct HeldoutSpec {
  std::string base_directory;
  TokenWidth width = TokenWidth::k32;
  std::uint32_t end_of_text = 0;
  std::uint32_t padding = 0;          // id behind the real tokens
  std::uint64_t sequence_length = 0;  // longer documents are cut here
  Vocabulary vocabulary;
};

// Held-out text by document: instance i is document i of the mix (files in manifest order), cut at
// the sequence length and padded (OLMo-core's padded fixed-length data set). Unlike there, no
// document is left out and nothing is shuffled. Immutable, thread-safe.
class HeldoutDocuments final : public InstanceSource {
 public:
  // Opens every file and finds its documents. kData when there is no document, else as
  // document_spans. `fs` must outlive it.
  HeldoutDocuments(FileSystem& fs, const HeldoutSpec& spec, std::span<const MixEntry> mix);

  [[nodiscard]] std::uint64_t instances() const override { return documents_.size(); }
  [[nodiscard]] std::uint64_t sequence_length() const override { return spec_.sequence_length; }
  [[nodiscard]] std::size_t read(std::uint64_t id, std::span<std::uint32_t> tokens) const override;
  [[nodiscard]] const std::vector<std::string>& labels() const override { return labels_; }
  [[nodiscard]] std::size_t label_of(std::uint64_t id) const override {
    return files_[documents_.at(id).file].label;
  }
  [[nodiscard]] const std::string& fingerprint() const override { return fingerprint_; }
  // Tokens of the whole document, before any cut.
  [[nodiscard]] std::uint64_t length_of(std::uint64_t id) const {
    return documents_.at(id).span.end - documents_.at(id).span.begin;
  }

 private:
  struct File {
    std::unique_ptr<TokenFile> tokens;
    std::size_t label;
  };
  struct Document {
    std::size_t file;
    DocumentSpan span;
  };

  HeldoutSpec spec_;
  std::vector<File> files_;
  std::vector<Document> documents_;
  std::vector<std::string> labels_;
  std::string fingerprint_;
};

}  // namespace lockstep
