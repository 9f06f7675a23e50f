#include "data/packed_instances.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/python_random.h"
#include "data/best_fit.h"

namespace lockstep {

PackedInstances::PackedInstances(FileSystem& fs, const DataIndex& index, const PackingSpec& spec,
                                 ThreadPool& pool)
    : index_(index), spec_(spec), files_(fs, index), first_piece_{0} {
  if (spec.files_per_group == 0 || sequence_length() > 0xffffffffU) {
    fail(ErrorKind::kConfig, "packing: ", spec.files_per_group, " files a group, length ",
         sequence_length());
  }
  const auto order = PythonRandom(spec.file_seed).shuffled_range(index.files().size());
  const std::size_t per_group = spec.files_per_group;
  std::vector<Group> groups((order.size() + per_group - 1) / per_group);
  pool.parallel_for(static_cast<std::int64_t>(groups.size()), [&](std::int64_t i, int) {
    const auto first = static_cast<std::size_t>(i) * per_group;
    groups[static_cast<std::size_t>(i)] =
        pack(fs, std::span(order).subspan(first, std::min(per_group, order.size() - first)));
  });
  for (const Group& group : groups) append(group);
  if (instances() == 0) {
    fail(ErrorKind::kData, "packing: ", order.size(), " files hold no document that ends with ",
         "end-of-text token ", spec.end_of_text);
  }
  set_labels();
  set_fingerprint();
}

PackedInstances::Group PackedInstances::pack(FileSystem& fs,
                                             std::span<const std::size_t> files) const {
  const auto longest = sequence_length();
  Group group;
  std::vector<std::uint32_t> lengths;
  for (const std::size_t i : files) {
    const TokenFile file(fs, index_.full_path(i), index_.spec().width, index_.files()[i].tokens);
    for (const auto& span : document_spans(fs, file, spec_.end_of_text, spec_.vocabulary)) {
      const std::uint64_t whole = span.end - span.begin;
      const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(whole, longest));
      group.lost += whole - length;
      group.pieces.push_back({span.begin, static_cast<std::uint32_t>(i), length});
      lengths.push_back(length);
    }
  }
  group.bins = pack_best_fit(lengths, static_cast<std::uint32_t>(longest));
  return group;
}

void PackedInstances::append(const Group& group) {
  for (const auto& bin : group.bins) {
    for (const std::uint32_t piece : bin) pieces_.push_back(group.pieces[piece]);
    first_piece_.push_back(pieces_.size());
  }
  lost_tokens_ += group.lost;
}

void PackedInstances::set_labels() {
  for (const IndexFile& file : index_.files()) {
    const auto known = std::find(labels_.begin(), labels_.end(), file.label);
    label_of_file_.push_back(static_cast<std::size_t>(known - labels_.begin()));
    if (known == labels_.end()) labels_.push_back(file.label);
  }
}

void PackedInstances::set_fingerprint() {
  Hasher128 hasher;
  hasher.add("lockstep packed instances 1");
  hasher.add(index_.fingerprint());
  hasher.add_value(spec_.padding);
  for (const Piece& piece : pieces_) {
    hasher.add_value(piece.begin);
    hasher.add_value(piece.file);
    hasher.add_value(piece.length);
  }
  hasher.add(first_piece_.data(), first_piece_.size() * sizeof first_piece_[0]);
  fingerprint_ = hasher.hex();
}

std::size_t PackedInstances::read(std::uint64_t id, std::span<std::uint32_t> tokens) const {
  LOCKSTEP_CHECK(id < instances() && tokens.size() == sequence_length(), "instance ", id, " of ",
                 instances(), ", room for ", tokens.size());
  std::size_t at = 0;
  for (std::uint64_t i = first_piece_[id]; i < first_piece_[id + 1]; ++i) {
    const Piece& piece = pieces_[i];
    files_.file(piece.file)->read(piece.begin, tokens.subspan(at, piece.length), spec_.vocabulary);
    at += piece.length;
  }
  std::fill(tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens.end(), spec_.padding);
  return at;
}

std::size_t PackedInstances::label_of(std::uint64_t id) const {
  return label_of_file_[pieces_[first_piece_.at(id)].file];
}

}  // namespace lockstep
