#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eval/choice_metrics.h"
#include "io/file.h"

namespace lockstep {

// One choice of a document of a frozen request file.
struct FrozenChoice {
  std::string context;
  std::string continuation;
  std::string bare_context;  // of the unconditional twin
};

struct FrozenDocument {
  std::uint64_t id = 0;
  std::vector<FrozenChoice> choices = {};
  std::size_t gold = 0;
  bool has_choices = true;  // false: only the gold continuation is there, no label to choose by
  bool has_twin = false;
};

// Requests as Ai2's in-loop evaluation keeps them: a JSON line for each document and choice with
// request.context, request.continuation, doc_id, idx (the choice's place) and label (the right
// choice; text or null where the continuation is the only one). Documents from 1,000,000 on are the
// unconditional twins of those without it. Plain, .gz or .zst. In the order of the file. Throws
// kInput naming file, line and field.
[[nodiscard]] std::vector<FrozenDocument> read_requests(FileSystem& fs, const std::string& path);

struct RequestReport {
  std::int64_t documents = 0;
  std::int64_t with_choices = 0;
  std::int64_t acc = 0;
  std::int64_t acc_per_char = 0;  // of the continuation without one space in front
  std::int64_t acc_per_byte = 0;
  std::int64_t with_twin = 0;
  std::int64_t acc_uncond = 0;  // by log P(continuation | context) - log P(continuation | twin's)
  double bits_per_byte = 0;     // of the gold continuation, all of it; mean over documents
  double bits_per_byte_error = 0;  // standard error of that mean; NaN below 2 documents
};

// Contexts and continuations are encoded apart (encode_apart()). `name` is for errors.
[[nodiscard]] RequestReport evaluate_requests(Model& model,
                                              const std::vector<FrozenDocument>& documents,
                                              const Tokenizer& tokenizer, std::int32_t prefix,
                                              std::int64_t max_length, std::string_view name,
                                              ThreadPool& pool, const ScoreOptions& options);

}  // namespace lockstep
