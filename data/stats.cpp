#include "data/stats.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "data/document_spans.h"

namespace lockstep {

namespace {

constexpr std::size_t kPieceTokens = std::size_t{1} << 16U;

// What is gathered of a label before it is summed up. All are integers: the order in which files
// arrive does not matter.
struct Gathered {
  std::vector<std::uint64_t> counts;   // by id
  std::vector<std::uint64_t> lengths;  // of documents
  std::uint64_t files = 0;
};

Gathered gather(FileSystem& fs, const StatsSpec& spec, const std::string& path) {
  const TokenFile file(fs, join_path(spec.base_directory, path), spec.width);
  Gathered out;
  out.files = 1;
  out.counts.resize(spec.vocabulary.size);
  std::vector<std::uint32_t> piece(std::min<std::uint64_t>(kPieceTokens, file.tokens()));
  for (std::uint64_t first = 0; first < file.tokens(); first += piece.size()) {
    const auto ids =
        std::span(piece).first(std::min<std::uint64_t>(piece.size(), file.tokens() - first));
    file.read(first, ids, spec.vocabulary);
    for (const std::uint32_t id : ids) ++out.counts[id];
  }
  for (const DocumentSpan& span : document_spans(fs, file, spec.end_of_text, spec.vocabulary)) {
    out.lengths.push_back(span.end - span.begin);
  }
  return out;
}

void merge(const Gathered& from, Gathered& into) {
  into.files += from.files;
  into.counts.resize(from.counts.size());
  for (std::size_t id = 0; id < from.counts.size(); ++id) into.counts[id] += from.counts[id];
  into.lengths.insert(into.lengths.end(), from.lengths.begin(), from.lengths.end());
}

LabelStats summary(const std::string& label, Gathered& gathered) {
  LabelStats stats{.label = label, .files = gathered.files};
  for (const std::uint64_t count : gathered.counts) stats.tokens += count;
  for (std::size_t id = 0; id < gathered.counts.size(); ++id) {
    if (gathered.counts[id] == 0) continue;
    if (stats.distinct_ids++ == 0) stats.smallest_id = static_cast<std::uint32_t>(id);
    stats.largest_id = static_cast<std::uint32_t>(id);
    const double share =
        static_cast<double>(gathered.counts[id]) / static_cast<double>(stats.tokens);
    stats.unigram_entropy -= share * std::log(share);
  }
  auto& lengths = gathered.lengths;
  std::sort(lengths.begin(), lengths.end());
  stats.documents = lengths.size();
  if (!lengths.empty()) {
    stats.shortest = lengths.front();
    stats.median = lengths[(lengths.size() - 1) / 2];
    stats.longest = lengths.back();
  }
  return stats;
}

}  // namespace

std::vector<LabelStats> mix_stats(FileSystem& fs, const StatsSpec& spec,
                                  std::span<const MixEntry> mix, ThreadPool& pool) {
  std::vector<std::string> labels;
  std::vector<std::size_t> label_of;
  for (const MixEntry& entry : mix) {
    const auto known = std::find(labels.begin(), labels.end(), entry.label);
    label_of.push_back(static_cast<std::size_t>(known - labels.begin()));
    if (known == labels.end()) labels.push_back(entry.label);
  }
  std::vector<Gathered> gathered(labels.size());
  std::mutex mutex;
  pool.parallel_for(static_cast<std::int64_t>(mix.size()), [&](std::int64_t i, int) {
    const auto file = static_cast<std::size_t>(i);
    const Gathered one = gather(fs, spec, mix[file].path);
    const std::lock_guard lock(mutex);
    merge(one, gathered[label_of[file]]);
  });
  std::vector<LabelStats> out;
  for (std::size_t i = 0; i < labels.size(); ++i) out.push_back(summary(labels[i], gathered[i]));
  return out;
}

}  // namespace lockstep
