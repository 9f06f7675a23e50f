#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/model_source.h"
#include "eval/evaluation_file.h"
#include "eval/loglikelihood.h"
#include "eval/task_documents.h"
#include "io/file.h"
#include "tokenizer/tokenizer.h"

// The parts of `lockstep eval`.
namespace lockstep::cli {

// Options that are absent are taken from the run's recipe, when the model is a run's.
struct EvalOptions {
  std::string model;
  bool heldout = false;
  std::string mix;
  std::string base_directory;
  std::string tokenizer_name;
  std::string tokenizer;
  std::string token_type;  // empty: the run's, else uint32
  std::int64_t sequence_length = 0;
  std::int64_t batch = 8;
  std::optional<std::int64_t> max_documents;
  bool by_document = false;
  std::string precision;  // empty: fp32, with --surfaces that of the run
  HfImportOptions import;
  MachineOptions machine;
  // Tasks and requests.
  std::vector<std::string> tasks;
  std::string tasks_directory;
  std::string data;
  std::optional<std::uint32_t> fewshot;
  std::vector<std::uint32_t> fewshot_ids;
  std::string fewshot_sampler = "task";
  std::uint32_t fewshot_seed = 1234;
  std::optional<std::size_t> limit;
  std::string log_samples;
  bool no_prefix_reuse = false;
  std::vector<std::string> requests;
  // Surfaces.
  bool surfaces = false;
  std::vector<std::string> surface_names;  // empty: those that there is something for
  std::string reference;
  std::string reference_precision = "fp32";
  std::optional<std::int64_t> kl_tokens;
  std::string c4;
  std::string output;
};

void add_task_options(CLI::App& command, EvalOptions& options);
[[nodiscard]] int run_tasks(Context& context, const EvalOptions& options);
[[nodiscard]] int run_requests(Context& context, const EvalOptions& options);
void add_surface_options(CLI::App& command, EvalOptions& options);
[[nodiscard]] int run_surfaces(Context& context, const EvalOptions& options);

[[nodiscard]] FewshotOptions fewshot_options(const EvalOptions& options);
// "fp32" where none was named.
[[nodiscard]] std::string precision_name(const EvalOptions& options);

// A line of the table of domains, under this title.
inline constexpr const char* kHeldoutTitle =
    "domain                       documents     targets      loss  perplexity  bits/byte"
    "  olmo-core";
[[nodiscard]] std::string domain_line(const HeldoutSurface::Domain& domain);

// A model with what reading text for it takes.
struct TextModel {
  CpuStream stream;
  HfModel source;
  Tokenizer tokenizer;
  std::int32_t prefix;      // end of text: what stands for an empty context
  std::int64_t max_length;  // positions
  std::unique_ptr<Model> model;
};
// kInput when there is no tokenizer, or one with more ids than the model.
[[nodiscard]] std::unique_ptr<TextModel> open_text_model(FileSystem& fs,
                                                         const EvalOptions& options);

[[nodiscard]] ScoreOptions score_options(const EvalOptions& options);

// A bar, the share, what is being done and the time left, redrawn as the share grows.
class ProgressBar {
 public:
  explicit ProgressBar(Context& context);
  void show(double share, std::string_view what);

 private:
  Context& context_;
  std::int64_t start_ns_;
};

[[nodiscard]] OrderedJson number_or_null(double value);

}  // namespace lockstep::cli
