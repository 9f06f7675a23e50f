#include "base/error.h"
#include "base/text.h"
#include "eval/loglikelihood.h"
#include "eval/text_steps.h"

namespace lockstep {
namespace {

std::vector<std::int32_t> encoded(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text, Special::kParse);
  return {ids.begin(), ids.end()};
}

}  // namespace

EncodedPair encode_pair(const Tokenizer& tokenizer, std::string_view context,
                        std::string_view continuation, std::int32_t prefix) {
  const std::string whole = concat(context, continuation);
  const std::string_view kept =
      std::string_view(whole).substr(0, length_without_trailing_space(context));
  if (kept.empty()) return {{prefix}, encoded(tokenizer, whole)};
  EncodedPair pair{encoded(tokenizer, kept), encoded(tokenizer, whole)};
  auto& ids = pair.continuation;
  ids.erase(ids.begin(), ids.begin() + std::min(std::ssize(ids), std::ssize(pair.context)));
  return pair;
}

EncodedPair encode_apart(const Tokenizer& tokenizer, std::string_view context,
                         std::string_view continuation, std::int32_t prefix) {
  EncodedPair pair{encoded(tokenizer, context), encoded(tokenizer, continuation)};
  if (pair.context.empty()) pair.context = {prefix};
  return pair;
}

ScoreRequest score_request(const EncodedPair& pair, std::int64_t max_length,
                           std::string_view where) {
  const std::int64_t targets = std::ssize(pair.continuation);
  if (targets == 0) fail(ErrorKind::kInput, where, ": the continuation has no tokens");
  if (targets > max_length) {
    fail(ErrorKind::kInput, where, ": the continuation has ", targets, " tokens, the model takes ",
         max_length);
  }
  ScoreRequest request{pair.context, pair.continuation};
  request.input.insert(request.input.end(), pair.continuation.begin(), pair.continuation.end() - 1);
  if (std::ssize(request.input) > max_length) {
    request.input.erase(request.input.begin(), request.input.end() - max_length);
  }
  return request;
}

}  // namespace lockstep
