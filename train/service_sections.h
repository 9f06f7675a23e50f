#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/enum_name.h"
#include "model/numerics.h"
#include "tensor/isa.h"

namespace lockstep {

// The sections that decide how a run is served (saved, watched, started), not what it computes.

struct CheckpointConfig {
  std::int64_t interval = 1000;
  std::int64_t keep_last = 3;
  std::int64_t keep_every = 0;
  std::vector<std::int64_t> also_at;

  template <class V>
  void fields(V&& v) {
    v("interval", interval, "steps between checkpoints; 0: only at the end and on a signal",
      {.min = 0});
    v("keep_last", keep_last, "newest checkpoints kept; 0: all", {.min = 0});
    v("keep_every", keep_every, "every step that is a multiple is kept too; 0: none", {.min = 0});
    v("also_at", also_at, "further steps to save at; these are never removed", {.min = 1});
  }
};

// What a model is held against (docs/guide.md, "Evaluate").
enum class Surface { kHeldout, kTasks, kKl };
constexpr auto enum_table(Surface) {
  return std::array{EnumName{Surface::kHeldout, "heldout"}, EnumName{Surface::kTasks, "tasks"},
                    EnumName{Surface::kKl, "kl"}};
}

struct EvalConfig {
  std::int64_t interval = 0;
  std::vector<Surface> surfaces = {Surface::kHeldout};
  std::string mix;
  std::string base_dir;
  std::string tokenizer;
  std::int64_t batch = 8;
  std::int64_t max_documents = 0;
  std::string c4;
  std::vector<std::string> tasks;
  std::string tasks_data;
  std::string tasks_dir;
  std::int64_t fewshot = 0;
  std::int64_t limit = 0;
  std::string reference;
  Precision reference_precision = Precision::kFp32;
  std::int64_t kl_tokens = 65536;

  template <class V>
  void fields(V&& v) {
    v("interval", interval, "steps between evaluations; 0: none", {.min = 0});
    v("surfaces", surfaces,
      "what is evaluated: held-out loss by domain, multiple-choice tasks, token-level KL against "
      "reference");
    v("mix", mix, "manifest of held-out token files, a label for each domain");
    v("base_dir", base_dir, "where its paths start; data.base_dir when empty");
    v("tokenizer", tokenizer, "put in place of {TOKENIZER} there; data.tokenizer when empty");
    v("batch", batch, "instances at a time; no result depends on it", {.min = 1, .max = 65536});
    v("max_documents", max_documents, "of each domain, from its start; 0: all", {.min = 0});
    v("c4", c4, "label of the domain that stands for C4; when empty the first that holds \"c4\"");
    v("tasks", tasks, "tasks, groups or subtasks; the usual eight when empty");
    v("tasks_data", tasks_data, "directory of the tasks' data sets, as JSON lines");
    v("tasks_dir", tasks_dir, "further tasks, a TOML file each");
    v("fewshot", fewshot, "examples before each question", {.min = 0, .max = 1000});
    v("limit", limit, "questions of each task and subtask; 0: all", {.min = 0});
    v("reference", reference,
      "a Hugging Face directory or checkpoint, or a run or bundle, of which the checkpoint of the "
      "same step is taken");
    v("reference_precision", reference_precision, "its precision");
    v("kl_tokens", kl_tokens, "held-out tokens compared, in whole documents; 0: all", {.min = 0});
  }
};

struct SampleConfig {
  std::int64_t interval = 0;
  std::string prompt;
  std::int64_t tokens = 64;
  double temperature = 0;
  double top_p = 1;
  std::int64_t seed = 0;

  template <class V>
  void fields(V&& v) {
    v("interval", interval, "steps between printed continuations of the prompt; 0: none",
      {.min = 0});
    v("prompt", prompt, "text to go on from");
    v("tokens", tokens, "length of the continuation", {.min = 1, .max = 65536});
    v("temperature", temperature, "0: greedy", {.min = 0, .max = 100});
    v("top_p", top_p, "share of the probability to draw from",
      {.min = 0, .max = 1, .above_min = true});
    v("seed", seed, "of the draws", {.min = 0});
  }
};

struct MetricsConfig {
  std::int64_t interval = 1;
  bool tensorboard = true;
  bool csv = false;

  template <class V>
  void fields(V&& v) {
    v("interval", interval, "steps between lines on the terminal; files hold every step",
      {.min = 1});
    v("tensorboard", tensorboard, "write TensorBoard event files");
    v("csv", csv, "write metrics.csv beside metrics.jsonl");
  }
};

struct StartConfig {
  std::int64_t seed = 0;
  std::string from;
  std::optional<std::int64_t> step = std::nullopt;
  bool moments = true;
  bool continue_step = false;

  template <class V>
  void fields(V&& v) {
    v("seed", seed, "of the initial weights", {.min = 0});
    v("from", from,
      "a run, a checkpoint or a Hugging Face directory to start from; empty: fresh weights");
    v("step", step, "which checkpoint of a run; the newest when not set", {.min = 0});
    v("moments", moments, "take over the optimiser's moments too");
    v("continue_step", continue_step,
      "go on with the step counter, the place in the data and the skip window; else all start "
      "anew");
  }
  void validate() const;
};

struct CpuConfig {
  int threads = 0;
  std::string isa = "auto";

  template <class V>
  void fields(V&& v) {
    v("threads", threads, "0: all CPUs that the process may use; no result depends on it",
      {.min = 0, .max = 4096});
    v("isa", isa,
      "kernels to use: auto, portable, avx2, avx512 or avx512_bf16; another set is not bit-exact");
  }
  void validate() const;
  [[nodiscard]] int thread_count() const;  // all CPUs of the process for 0
  [[nodiscard]] Isa kernel_isa() const;    // default_isa() for "auto"
};

struct ProfileConfig {
  std::string steps;

  template <class V>
  void fields(V&& v) {
    v("steps", steps, "steps whose parts are timed, from 1: \"10-12\" or \"10\"; \"\": none");
    v.retired("first_step", {std::int64_t{0}}, "steps");
    v.retired("last_step", {std::int64_t{0}}, "steps");
  }
  void validate() const;
  // First and last step; {0, 0} for none. kConfig for a text that is no range.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> range() const;
};

}  // namespace lockstep
