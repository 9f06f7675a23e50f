#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"

// What an evaluation found, as one JSON file (docs/formats.md, "Evaluation file"). Numbers that are
// not defined or not finite are NaN here and null there.
namespace lockstep {

struct EvaluatedModel {
  std::string name = {};
  std::int64_t step = 0;
  std::string precision = {};  // "fp32" or "bf16"
  std::string producer = {};   // the program that evaluated
};

struct HeldoutSurface {
  struct Domain {
    std::string label = {};
    std::int64_t documents = 0;
    std::int64_t tokens = 0;
    std::int64_t targets = 0;
    std::int64_t bytes = 0;  // of the targets' text; 0: not known
    double loss = 0;         // nats, mean over the targets
    double perplexity = 0;
    double bits_per_byte = 0;
    double loss_olmo_core = 0;
    double perplexity_olmo_core = 0;
  };
  struct Document {
    std::string label = {};
    std::int64_t document = 0;  // in the held-out set
    std::int64_t targets = 0;
    std::int64_t bytes = 0;
    double ce = 0;  // nats, summed
  };
  std::string data_fingerprint = {};
  std::int64_t sequence_length = 0;
  std::vector<Domain> domains = {};
  std::vector<Document> by_document = {};
};

struct TaskSurface {
  struct Answer {
    std::int64_t doc = 0;      // in its subtask
    std::string subtask = {};  // empty: the task has none
    bool acc = false;          // right by this rule
    bool acc_norm = false;
    bool acc_bytes = false;
  };
  std::string name = {};
  std::int64_t fewshot = 0;  // examples before each question
  std::int64_t n = 0;
  double acc = 0;
  double acc_stderr = 0;
  double acc_norm = 0;
  double acc_bytes = 0;
  std::vector<Answer> documents = {};
};

// KL(reference || model) in nats by position.
struct KlSurface {
  struct Bucket {
    std::int64_t first = 0;  // position in its sequence, from 0
    std::int64_t last = 0;   // included
    std::int64_t tokens = 0;
    double mean = 0;
  };
  struct Document {
    std::int64_t document = 0;  // in the held-out set
    std::int64_t tokens = 0;
    double kl = 0;  // summed
  };
  std::string reference = {};
  std::int64_t vocab = 0;
  std::int64_t tokens = 0;
  double mean = 0;
  double max = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double p99_9 = 0;
  double top1 = 0;  // share of positions with the same most likely token
  double top5 = 0;  // mean of what the two sets of five have in common, over 5
  std::vector<Bucket> buckets = {};
  std::vector<Document> by_document = {};
};

struct Evaluation {
  EvaluatedModel model;
  std::optional<HeldoutSurface> heldout = std::nullopt;
  std::optional<std::vector<TaskSurface>> tasks = std::nullopt;
  std::optional<KlSurface> kl = std::nullopt;
};

// The text of the file, one record a line. The same evaluation gives the same bytes, and reading
// them gives the same bits.
[[nodiscard]] std::string to_json_text(const Evaluation& evaluation);

// kInput when there is no such file; kData naming file and key when it is not such a file, is of
// another version, or lacks a key, has one that this version does not know or of another type.
[[nodiscard]] Evaluation read_evaluation(FileSystem& fs, const std::string& path);
// The same of a text; `where` begins every error.
[[nodiscard]] Evaluation parse_evaluation(std::string_view text, const std::string& where);

// `added` with the surfaces and tasks of `existing` that it lacks. kConfig, beginning with `where`,
// when they are of different models, steps or precisions.
[[nodiscard]] Evaluation merge(const Evaluation& existing, Evaluation added,
                               const std::string& where);

}  // namespace lockstep
