#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/enum_name.h"
#include "data/order.h"
#include "data/token_file.h"
#include "model/numerics.h"

namespace lockstep {

constexpr auto enum_table(OrderKind) {
  return std::array{EnumName{OrderKind::kFeistel, "feistel"},
                    EnumName{OrderKind::kOlmoCore, "olmo-core"},
                    EnumName{OrderKind::kSequential, "sequential"}};
}
constexpr auto enum_table(TokenWidth) {
  return std::array{EnumName{TokenWidth::k32, "uint32"}, EnumName{TokenWidth::k16, "uint16"}};
}

// What the summed loss of a step is divided by. global: the unmasked targets of the whole batch.
// olmo_core: those, with the targets of filtered instances added back.
enum class LossDivisor { kGlobal, kOlmoCore };
constexpr auto enum_table(LossDivisor) {
  return std::array{EnumName{LossDivisor::kGlobal, "global"},
                    EnumName{LossDivisor::kOlmoCore, "olmo-core"}};
}

enum class Offload { kNone, kDisk };
constexpr auto enum_table(Offload) {
  return std::array{EnumName{Offload::kNone, "none"}, EnumName{Offload::kDisk, "disk"}};
}

struct RunConfig {
  std::string name = "run";
  std::string dir;
  std::optional<std::int64_t> fork_from = std::nullopt;
  std::vector<std::string> stages;

  template <class V>
  void fields(V&& v) {
    v("name", name, "what the run is called; without / and control characters");
    v("dir", dir, "the run's directory; runs/NAME when empty", {.benign = true});
    v("fork_from", fork_from,
      "step of the run's own checkpoint from which a changed recipe goes on, on purpose",
      {.min = 0, .benign = true});
    v("stages", stages,
      "recipe files of the whole training in order, this one included, relative to this file's "
      "folder; for the plan only",
      {.benign = true});
  }
  void validate() const;
};

struct FilterConfig {
  bool enabled = false;

  template <class V>
  void fields(V&& v) {
    v("enabled", enabled,
      "mask out of the loss an instance that repeats 1 to 13 tokens 32 times or more");
  }
};

struct DataConfig {
  std::string mix;
  std::vector<std::string> files;
  std::string base_dir;
  std::string tokenizer;
  std::string tokenizer_file;
  TokenWidth token_type = TokenWidth::k32;
  std::int64_t sequence_length = 8192;
  OrderKind order = OrderKind::kFeistel;
  std::int64_t seed = 34521;
  std::optional<std::int64_t> instances = std::nullopt;
  bool document_mask = false;
  bool packed = false;
  FilterConfig filter = {};
  std::string cache_dir;
  int prefetch = 2;

  template <class V>
  void fields(V&& v) {
    v("mix", mix, "mix manifest of token files (lines label,path); this or files");
    v("files", files, "token files, in the global order; this or mix");
    v("base_dir", base_dir, "where the paths of the manifest and of files start", {.benign = true});
    v("tokenizer", tokenizer, "the tokenizer's name, put in place of {TOKENIZER} in paths");
    v("tokenizer_file", tokenizer_file, "tokenizer.json, for samples and checks of the vocabulary",
      {.benign = true});
    v("token_type", token_type, "of headerless token files");
    v("sequence_length", sequence_length, "tokens of an instance", {.min = 2, .max = 16777216});
    v("order", order, "how an epoch walks through the instances");
    v("seed", seed, "of the order", {.min = 0});
    v("instances", instances,
      "instances in an epoch, for a plan where the token files are not at hand; the index of the "
      "files wins",
      {.min = 1, .max = 1099511627776, .benign = true});
    v("document_mask", document_mask, "attention stays inside a document");
    v("packed", packed,
      "instances are whole documents packed by best fit, cut only when longer than an instance; "
      "needs document_mask");
    v("filter", filter, "instances masked out of the loss");
    v("cache_dir", cache_dir, "where the index and orders are cached; the run's own when empty",
      {.benign = true});
    v("prefetch", prefetch, "batches made ahead; no result depends on it",
      {.min = 0, .max = 1024, .benign = true});
  }
  void validate() const;
};

struct BatchConfig {
  std::optional<std::int64_t> instances = std::nullopt;
  std::optional<std::int64_t> tokens = std::nullopt;
  std::int64_t microbatch = 1;

  template <class V>
  void fields(V&& v) {
    v("instances", instances, "instances of a step, over all ranks; this or tokens",
      {.min = 1, .max = 16777216});
    v("tokens", tokens, "tokens of a step: a multiple of data.sequence_length; this or instances",
      {.min = 1});
    v("microbatch", microbatch, "instances of a leaf of the gradient's sum; divides the batch",
      {.min = 1, .max = 65536});
  }
  void validate() const;
};

struct TrainConfig {
  std::optional<std::int64_t> steps = std::nullopt;
  std::optional<std::int64_t> tokens = std::nullopt;
  std::optional<std::int64_t> epochs = std::nullopt;
  std::optional<std::int64_t> stop_at = std::nullopt;
  std::vector<std::array<std::int64_t, 2>> steps_to_skip;
  Precision precision = Precision::kBf16;
  Remat remat = Remat::kNone;
  Offload offload = Offload::kNone;
  double z_loss = 1e-5;
  LossDivisor loss_divisor = LossDivisor::kGlobal;
  int max_skipped_in_row = 10;

  template <class V>
  void fields(V&& v) {
    v("steps", steps, "length of the run in steps; one of steps, tokens, epochs",
      {.min = 1, .max = 1e12});
    v("tokens", tokens, "the same in tokens; rounded up to steps", {.min = 1, .max = 1e18});
    v("epochs", epochs, "the same in epochs; the tail that fills no batch is dropped",
      {.min = 1, .max = 1000000});
    v("stop_at", stop_at, "step at which the run stops before its length; the schedule is kept",
      {.min = 1, .benign = true});
    v("steps_to_skip", steps_to_skip,
      "[first, last] steps whose batches are passed over: they count, but train nothing",
      {.min = 1});
    v("precision", precision,
      "of matrix products; resuming under another one works but is not bit-exact",
      {.benign = true});
    v("remat", remat, "what backward computes again to save memory; the same bits for all",
      {.benign = true});
    v("offload", offload,
      "where the optimiser's moments and the copy that is being saved are kept: in memory (none) "
      "or "
      "in files of the run's directory (disk); the same bits",
      {.benign = true});
    v("z_loss", z_loss, "weight of the mean squared logsumexp", {.min = 0});
    v("loss_divisor", loss_divisor, "what the summed loss is divided by");
    v("max_skipped_in_row", max_skipped_in_row,
      "steps skipped one after another that abort the run; 0: never", {.min = 0, .benign = true});
  }
  void validate() const;
};

}  // namespace lockstep
