#pragma once

#include <string>
#include <vector>

#include "data/index.h"
#include "data/instance_source.h"
#include "data/token_file_pool.h"

namespace lockstep {

// The windows of a DataIndex as instances: every token is real. Thread-safe.
// `fs` and `index` must outlive it.
class FixedInstances final : public InstanceSource {
 public:
  // kData, naming the counts, when no file holds one whole instance.
  FixedInstances(FileSystem& fs, const DataIndex& index, const Vocabulary& vocabulary);

  [[nodiscard]] std::uint64_t instances() const override { return index_.instances(); }
  [[nodiscard]] std::uint64_t sequence_length() const override {
    return index_.spec().sequence_length;
  }
  [[nodiscard]] std::size_t read(std::uint64_t id, std::span<std::uint32_t> tokens) const override;
  [[nodiscard]] const std::vector<std::string>& labels() const override { return labels_; }
  [[nodiscard]] std::size_t label_of(std::uint64_t id) const override;
  [[nodiscard]] const std::string& fingerprint() const override { return index_.fingerprint(); }

 private:
  const DataIndex& index_;
  Vocabulary vocabulary_;
  mutable TokenFilePool files_;
  std::vector<std::string> labels_;
  std::vector<std::size_t> label_of_file_;
};

}  // namespace lockstep
