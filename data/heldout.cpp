#include "data/heldout.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace lockstep {

HeldoutDocuments::HeldoutDocuments(FileSystem& fs, const HeldoutSpec& spec,
                                   std::span<const MixEntry> mix)
    : spec_(spec) {
  if (spec.sequence_length == 0) fail(ErrorKind::kConfig, "held-out text: sequence length 0");
  Hasher128 hasher;
  hasher.add("lockstep held-out documents 1");
  hasher.add_value(spec.sequence_length);
  hasher.add_value(spec.padding);
  for (const MixEntry& entry : mix) {
    auto file =
        std::make_unique<TokenFile>(fs, join_path(spec.base_directory, entry.path), spec.width);
    const auto known = std::find(labels_.begin(), labels_.end(), entry.label);
    const auto label = static_cast<std::size_t>(known - labels_.begin());
    if (known == labels_.end()) labels_.push_back(entry.label);
    hasher.add(concat(entry.path, '\n', entry.label, '\n', file->tokens(), '\n'));
    for (const DocumentSpan& span : document_spans(fs, *file, spec.end_of_text, spec.vocabulary)) {
      documents_.push_back({files_.size(), span});
      hasher.add_value(span.begin);
      hasher.add_value(span.end);
    }
    files_.push_back({std::move(file), label});
  }
  if (documents_.empty()) {
    fail(ErrorKind::kData, "held-out text: ", mix.size(), " files hold no document that ends with ",
         "end-of-text token ", spec.end_of_text);
  }
  fingerprint_ = hasher.hex();
}

std::size_t HeldoutDocuments::read(std::uint64_t id, std::span<std::uint32_t> tokens) const {
  LOCKSTEP_CHECK(tokens.size() == spec_.sequence_length, "room for ", tokens.size(), " tokens");
  const Document& document = documents_.at(id);
  const std::size_t real = std::min<std::uint64_t>(length_of(id), tokens.size());
  files_[document.file].tokens->read(document.span.begin, tokens.first(real), spec_.vocabulary);
  std::fill(tokens.begin() + static_cast<std::ptrdiff_t>(real), tokens.end(), spec_.padding);
  return real;
}

}  // namespace lockstep
