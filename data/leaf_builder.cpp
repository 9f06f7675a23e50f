#include "data/leaf_builder.h"

#include <algorithm>

#include "base/hash.h"
#include "data/instance_filter.h"

namespace lockstep {

std::string batch_digest(const std::string& row_digests) { return hash128_hex(row_digests); }

LeafBuilder::LeafBuilder(const InstanceSource& source, const LeafRules& rules)
    : source_(source), rules_(rules), tokens_(source.sequence_length()) {}

void LeafBuilder::build(std::span<const std::uint64_t> instances, LeafData& leaf,
                        std::vector<std::uint64_t>& tokens_by_label) {
  const std::size_t length = tokens_.size();
  leaf.tokens.resize(instances.size() * length);
  leaf.targets.resize(instances.size() * length);
  leaf.segments.resize(rules_.document_mask ? instances.size() * length : 0);
  leaf.instances.assign(instances.begin(), instances.end());
  leaf.filtered.resize(instances.size());
  leaf.real_tokens = 0;
  leaf.target_count = 0;
  leaf.row_digests.clear();
  for (std::size_t row = 0; row < instances.size(); ++row) {
    const std::size_t real = source_.read(instances[row], tokens_);
    leaf.real_tokens += real;
    tokens_by_label[source_.label_of(instances[row])] += real;
    fill_row(row, real, leaf);
  }
}

void LeafBuilder::fill_row(std::size_t row, std::size_t real, LeafData& leaf) const {
  const std::size_t length = tokens_.size();
  const auto tokens = std::span(leaf.tokens).subspan(row * length, length);
  const auto targets = std::span(leaf.targets).subspan(row * length, length);
  for (std::size_t t = 0; t < length; ++t) tokens[t] = static_cast<std::int32_t>(tokens_[t]);
  const bool filtered = rules_.filter && has_periodic_span(std::span(tokens_).first(real));
  leaf.filtered[row] = filtered ? 1 : 0;
  const std::size_t with_target = filtered || real == 0 ? 0 : real - 1;
  leaf.target_count += with_target;
  const auto next = tokens.subspan(1, with_target);
  std::fill(std::copy(next.begin(), next.end(), targets.begin()), targets.end(), kNoTarget);

  Hasher128 hasher;
  hasher.add_value(leaf.instances[row]);
  hasher.add(tokens.data(), tokens.size_bytes());
  hasher.add(targets.data(), targets.size_bytes());
  if (rules_.document_mask) {
    const auto segments = std::span(leaf.segments).subspan(row * length, length);
    fill_segments(real, segments);
    hasher.add(segments.data(), segments.size_bytes());
  }
  leaf.row_digests += hasher.hex();
}

void LeafBuilder::fill_segments(std::size_t real, std::span<std::int32_t> segments) const {
  std::int32_t segment = 0;
  bool ended = false;
  for (std::size_t t = 0; t < segments.size(); ++t) {
    if (ended || (t == real && t > 0)) ++segment;
    segments[t] = segment;
    // Padding is one segment, whatever id it has.
    ended = t < real && tokens_[t] == rules_.end_of_text;
    if (ended && t + 1 == real) ended = false;
  }
}

}  // namespace lockstep
