#include "data/fixed_instances.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {

FixedInstances::FixedInstances(FileSystem& fs, const DataIndex& index, const Vocabulary& vocabulary)
    : index_(index), vocabulary_(vocabulary), files_(fs, index) {
  if (index.instances() == 0) {
    fail(ErrorKind::kData, "data: ", index.files().size(), " files with ", index.tokens(),
         " tokens hold no instance of ", sequence_length(),
         " tokens; lower the sequence length or add data");
  }
  for (const IndexFile& file : index.files()) {
    const auto known = std::find(labels_.begin(), labels_.end(), file.label);
    label_of_file_.push_back(static_cast<std::size_t>(known - labels_.begin()));
    if (known == labels_.end()) labels_.push_back(file.label);
  }
}

std::size_t FixedInstances::read(std::uint64_t id, std::span<std::uint32_t> tokens) const {
  LOCKSTEP_CHECK(tokens.size() == sequence_length(), "room for ", tokens.size(), " tokens");
  const InstancePlace place = index_.place(id);
  files_.file(place.file)->read(place.first_token, tokens, vocabulary_);
  return tokens.size();
}

std::size_t FixedInstances::label_of(std::uint64_t id) const {
  return label_of_file_[index_.place(id).file];
}

}  // namespace lockstep
