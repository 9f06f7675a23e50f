#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

// A text as ids, cut where its continuation begins.
struct EncodedPair {
  std::vector<std::int32_t> context;  // never empty
  std::vector<std::int32_t> continuation;
};

// As lm-evaluation-harness cuts: white space at the context's end belongs to the continuation; both
// are encoded as one text, and the continuation is what comes after as many ids as the context
// alone has. `prefix` stands for an empty context. Added tokens in the text are tokens.
[[nodiscard]] EncodedPair encode_pair(const Tokenizer& tokenizer, std::string_view context,
                                      std::string_view continuation, std::int32_t prefix);

// Both encoded on their own, as Ai2's in-loop evaluation does.
[[nodiscard]] EncodedPair encode_apart(const Tokenizer& tokenizer, std::string_view context,
                                       std::string_view continuation, std::int32_t prefix);

// What the model reads for a continuation (all but its last id), and what it has to say at the
// last targets.size() positions.
struct ScoreRequest {
  std::vector<std::int32_t> input;
  std::vector<std::int32_t> targets;
};

// The last max_length + 1 ids of the pair, shifted: contexts are cut on the left. Throws kInput,
// beginning with `where`, when the continuation is empty or is longer than max_length.
[[nodiscard]] ScoreRequest score_request(const EncodedPair& pair, std::int64_t max_length,
                                         std::string_view where);

struct Score {
  double logprob = 0;   // natural log, summed over the continuation's ids
  bool greedy = false;  // each id is the most likely one (the lowest among equals)
};

enum class PrefixReuse { kNo, kYes };

struct ScoreOptions {
  // Positions that are run at a time. Memory and speed depend on it, no result does.
  std::int64_t tokens = 4096;
  // Whether what the requests of a question have in common is run once; the same bits either way.
  PrefixReuse reuse = PrefixReuse::kYes;
  std::function<void(double share)> progress = {};  // of the work done, 0 to 1; may be empty
  // May be empty; true ends early, with zeros for what was not scored.
  std::function<bool()> stopping = {};
};

// A question: requests whose inputs start alike, as a rule.
using Question = std::vector<ScoreRequest>;

// A score for every request; a question may have none. Log-probabilities are taken in fp32 over the
// ids below vocab_size and summed in fp64 in the order of positions: a function of weights and the
// request alone.
[[nodiscard]] std::vector<std::vector<Score>> score_questions(Model& model,
                                                              std::span<const Question> questions,
                                                              const ScoreOptions& options);

}  // namespace lockstep
