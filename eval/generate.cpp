#include "eval/generate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/rng.h"
#include "tensor/buffer.h"

namespace lockstep {
namespace {

struct Candidate {
  std::int32_t id;
  double weight;  // exp of the scaled logit, not normalised
};

bool less_likely(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight < b.weight : a.id > b.id;
}

// The id of the largest logit, the lowest among equals.
std::size_t likeliest(std::span<const float> logits, std::int64_t forbidden) {
  std::size_t best = logits.size();
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const float logit = logits[id];
    if (std::isnan(logit)) fail(ErrorKind::kNumeric, "the logit of token ", id, " is not a number");
    if (static_cast<std::int64_t>(id) == forbidden) continue;
    if (best == logits.size() || logit > logits[best]) best = id;
  }
  LOCKSTEP_CHECK(best < logits.size(), "no token to pick");
  return best;
}

// The candidates, from the most likely on, each put in its place when it is asked for: a sample is
// rarely far down, and a vocabulary is long.
class ByLikelihood {
 public:
  explicit ByLikelihood(std::vector<Candidate> all) : all_(std::move(all)), left_(all_.end()) {
    std::make_heap(all_.begin(), all_.end(), less_likely);
  }
  [[nodiscard]] bool any_left() const { return left_ != all_.begin(); }
  const Candidate& next() {
    std::pop_heap(all_.begin(), left_, less_likely);
    return *--left_;
  }

 private:
  std::vector<Candidate> all_;
  std::vector<Candidate>::iterator left_;
};

}  // namespace

std::int32_t sample_token(std::span<const float> logits, const SamplingConfig& config,
                          std::int64_t position, std::int64_t forbidden) {
  const std::size_t best = likeliest(logits, forbidden);
  if (config.temperature <= 0) return static_cast<std::int32_t>(best);
  std::vector<Candidate> all;
  all.reserve(logits.size());
  double total = 0;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (static_cast<std::int64_t>(id) == forbidden) continue;
    const double below = static_cast<double>(logits[id]) - static_cast<double>(logits[best]);
    const double weight = logits[id] == logits[best] ? 1 : std::exp(below / config.temperature);
    all.push_back({static_cast<std::int32_t>(id), weight});
    total += weight;
  }
  ByLikelihood candidates(std::move(all));
  std::vector<Candidate> taken;
  double held = 0;
  const auto take = [&] {
    taken.push_back(candidates.next());
    held += taken.back().weight;
  };
  const bool everything = config.top_p >= 1;
  while (!everything && candidates.any_left() && (taken.empty() || held < config.top_p * total)) {
    take();
  }
  double left = CounterRng(config.seed, "generate").uniform(static_cast<std::uint64_t>(position)) *
                (everything ? total : held);
  for (std::size_t i = 0;; ++i) {
    if (i == taken.size() && everything && candidates.any_left()) take();
    if (i == taken.size()) return taken.back().id;
    left -= taken[i].weight;
    if (left < 0) return taken[i].id;
  }
}

std::vector<std::int32_t> generate(Model& model, std::span<const std::int32_t> prompt,
                                   const SamplingConfig& config,
                                   const std::function<bool(std::int32_t)>& on_token) {
  constexpr std::int64_t kPiece = 256;
  if (prompt.empty()) fail(ErrorKind::kInput, "the prompt is empty: wanted at least one token");
  const ModelConfig& shape = model.config();
  const std::int64_t length = std::ssize(prompt);
  KvCache cache(shape, model.options().precision, 1, length + config.max_tokens);
  Buffer memory(shape.vocab_rows() * 4, "logits");
  const View logits(memory.data(), DType::kF32, {1, shape.vocab_rows()});
  std::vector<std::int32_t> piece;
  const auto feed = [&](std::span<const std::int32_t> tokens) {
    piece.assign(tokens.begin(), tokens.end());
    const std::int64_t count = std::ssize(piece);
    model.extend(cache, {piece.data(), DType::kI32, {1, count}});
    model.logits(count - 1, logits);
  };
  for (std::int64_t first = 0; first < length; first += kPiece) {
    feed(prompt.subspan(static_cast<std::size_t>(first),
                        static_cast<std::size_t>(std::min(kPiece, length - first))));
  }
  std::vector<std::int32_t> produced;
  const auto real = static_cast<std::size_t>(shape.vocab_size);
  while (std::ssize(produced) < config.max_tokens) {
    const std::int64_t pad = shape.pad_token_id == shape.eos_token_id ? -1 : shape.pad_token_id;
    const std::int32_t next =
        sample_token({logits.data<float>(), real}, config, length + std::ssize(produced), pad);
    if (config.stop_at_eos && next == shape.eos_token_id) break;
    produced.push_back(next);
    if (on_token && !on_token(next)) break;
    if (std::ssize(produced) < config.max_tokens) feed(std::span(&next, 1));
  }
  return produced;
}

}  // namespace lockstep
