#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/batch.h"
#include "data/instance_source.h"

namespace lockstep {

// What is made of an instance's tokens.
struct LeafRules {
  bool document_mask = false;     // fill LeafData::segments
  std::uint32_t end_of_text = 0;  // where documents end
  bool filter = false;  // mask out instances with a periodic span (data/instance_filter.h)
};

// Reads instances into leaves; buffers of a leaf that had the same shape are used again. Not
// thread-safe. `source` must outlive it.
class LeafBuilder {
 public:
  LeafBuilder(const InstanceSource& source, const LeafRules& rules);

  // Overwrites `leaf` with these instances, and adds their real tokens to `tokens_by_label`.
  void build(std::span<const std::uint64_t> instances, LeafData& leaf,
             std::vector<std::uint64_t>& tokens_by_label);

 private:
  void fill_row(std::size_t row, std::size_t real, LeafData& leaf) const;
  void fill_segments(std::size_t real, std::span<std::int32_t> segments) const;

  const InstanceSource& source_;
  LeafRules rules_;
  std::vector<std::uint32_t> tokens_;
};

}  // namespace lockstep
