#include "eval/token_kl.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

// 0 for position 0, then one bucket for each number of bits.
std::size_t bucket_of(std::int64_t position) {
  return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(position)));
}

double percentile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// One document of each label in turn until there are enough tokens; ascending.
std::vector<std::uint64_t> chosen_documents(const InstanceSource& source, std::int64_t max_tokens) {
  std::vector<std::vector<std::uint64_t>> by_label(source.labels().size());
  for (std::uint64_t id = 0; id < source.instances(); ++id) {
    by_label[source.label_of(id)].push_back(id);
  }
  std::vector<std::uint64_t> chosen;
  std::vector<std::uint32_t> tokens(source.sequence_length());
  std::int64_t taken = 0;
  for (std::size_t turn = 0; chosen.size() < source.instances(); ++turn) {
    for (const auto& documents : by_label) {
      if (turn >= documents.size()) continue;
      if (max_tokens > 0 && taken >= max_tokens) break;
      chosen.push_back(documents[turn]);
      if (max_tokens > 0) taken += static_cast<std::int64_t>(source.read(documents[turn], tokens));
    }
    if (max_tokens > 0 && taken >= max_tokens) break;
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace

void KlTally::add(std::int64_t document, std::int64_t position, const LogitDistance& distance) {
  kl_.push_back(distance.kl);
  same_top_ += distance.same_top ? 1 : 0;
  top5_ += distance.top5;
  const std::size_t bucket = bucket_of(position);
  for (std::size_t i = buckets_.size(); i <= bucket; ++i) {
    const std::int64_t first = i == 0 ? 0 : std::int64_t{1} << (i - 1);
    buckets_.push_back({.first = first, .last = i == 0 ? 0 : 2 * first - 1});
  }
  ++buckets_[bucket].tokens;
  buckets_[bucket].mean += distance.kl;
  if (documents_.empty() || documents_.back().document != document) {
    documents_.push_back({.document = document});
  }
  ++documents_.back().tokens;
  documents_.back().kl += distance.kl;
}

KlSurface KlTally::finish() const {
  KlSurface kl;
  kl.tokens = std::ssize(kl_);
  const auto count = static_cast<double>(kl_.size());
  double sum = 0;
  for (const auto& document : documents_) sum += document.kl;
  kl.mean = sum / count;
  kl.top1 = same_top_ / count;
  kl.top5 = top5_ / count;
  kl.max = kl.p50 = kl.p90 = kl.p99 = kl.p99_9 = std::nan("");
  if (!kl_.empty() && !std::isnan(sum)) {
    std::vector<double> sorted = kl_;
    std::sort(sorted.begin(), sorted.end());
    kl.max = sorted.back();
    kl.p50 = percentile(sorted, 0.5);
    kl.p90 = percentile(sorted, 0.9);
    kl.p99 = percentile(sorted, 0.99);
    kl.p99_9 = percentile(sorted, 0.999);
  }
  for (KlSurface::Bucket bucket : buckets_) {
    if (bucket.tokens == 0) continue;
    bucket.mean /= static_cast<double>(bucket.tokens);
    kl.buckets.push_back(bucket);
  }
  kl.by_document = documents_;
  return kl;
}

KlSurface measure_token_kl(Model& model, Model& reference, const InstanceSource& source,
                           CpuStream& stream, const KlOptions& options) {
  if (model.config().vocab_size != reference.config().vocab_size) {
    fail(ErrorKind::kInput, "token KL: the reference has a vocabulary of ",
         reference.config().vocab_size, " ids, the model of ", model.config().vocab_size,
         "; wanted the same tokenizer (--vocab-size where config.json counts padded rows)");
  }
  const auto chosen = chosen_documents(source, options.max_tokens);
  std::int64_t all = 0;
  std::vector<std::uint32_t> tokens(source.sequence_length());
  for (const std::uint64_t id : chosen) all += static_cast<std::int64_t>(source.read(id, tokens));
  KlTally tally;
  std::int64_t done = 0;
  for (const std::uint64_t id : chosen) {
    if (options.stopping && options.stopping()) break;
    const auto real = static_cast<std::ptrdiff_t>(source.read(id, tokens));
    const Reference theirs =
        reference_from_model(reference, {tokens.begin(), tokens.begin() + real}, 1);
    static_cast<void>(
        measure_parity(model, theirs, stream,
                       [&](std::int64_t, std::int64_t position, const LogitDistance& distance) {
                         tally.add(static_cast<std::int64_t>(id), position, distance);
                       }));
    done += real;
    if (options.progress) options.progress(done, all);
  }
  KlSurface kl = tally.finish();
  kl.vocab = model.config().vocab_size;
  return kl;
}

KlSurface measure_token_kl(Model& model, const Reference& stored, CpuStream& stream) {
  const ModelConfig& config = model.config();
  if (stored.vocab < config.vocab_size || stored.vocab > config.vocab_rows()) {
    fail(ErrorKind::kInput, "token KL: the stored logits are of ", stored.vocab,
         " ids, the model has ", config.vocab_size, "; wanted logits of the same tokenizer");
  }
  Reference logits_only = stored;
  logits_only.gradients.clear();
  KlTally tally;
  static_cast<void>(measure_parity(
      model, logits_only, stream,
      [&](std::int64_t sequence, std::int64_t position, const LogitDistance& distance) {
        tally.add(sequence, position, distance);
      }));
  KlSurface kl = tally.finish();
  kl.vocab = config.vocab_size;
  return kl;
}

}  // namespace lockstep
