#include "eval/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "tensor/buffer.h"

namespace lockstep {
namespace {

struct Candidate {
  std::int32_t id;
  double weight;  // exp of the scaled logit, not normalised
};

bool more_likely(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

std::vector<Candidate> candidates(std::span<const float> logits, double temperature,
                                  std::int64_t forbidden) {
  double largest = -std::numeric_limits<double>::infinity();
  std::vector<Candidate> all;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const auto logit = static_cast<double>(logits[id]);
    if (std::isnan(logit)) fail(ErrorKind::kNumeric, "the logit of token ", id, " is not a number");
    if (static_cast<std::int64_t>(id) == forbidden) continue;
    largest = std::max(largest, logit);
    all.push_back({static_cast<std::int32_t>(id), logit});
  }
  LOCKSTEP_CHECK(!all.empty(), "no token to pick");
  for (Candidate& each : all) {
    each.weight = each.weight == largest ? 1 : std::exp((each.weight - largest) / temperature);
  }
  return all;
}

}  // namespace

std::int32_t sample_token(std::span<const float> logits, const SamplingConfig& config,
                          std::int64_t position, std::int64_t forbidden) {
  std::vector<Candidate> all =
      candidates(logits, config.temperature > 0 ? config.temperature : 1, forbidden);
  if (config.temperature <= 0) {
    return std::min_element(all.begin(), all.end(), more_likely)->id;
  }
  std::sort(all.begin(), all.end(), more_likely);
  const auto add = [](double sum, const Candidate& each) { return sum + each.weight; };
  const double total = std::accumulate(all.begin(), all.end(), 0.0, add);
  double nucleus = 0;
  std::size_t kept = 0;
  while (kept < all.size() && (kept == 0 || nucleus < config.top_p * total)) {
    nucleus += all[kept++].weight;
  }
  double left =
      CounterRng(config.seed, "generate").uniform(static_cast<std::uint64_t>(position)) * nucleus;
  for (std::size_t i = 0; i + 1 < kept; ++i) {
    left -= all[i].weight;
    if (left < 0) return all[i].id;
  }
  return all[kept - 1].id;
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
