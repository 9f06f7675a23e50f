#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/hf_import.h"
#include "data/heldout.h"
#include "eval/surfaces.h"
#include "eval/task_documents.h"
#include "io/file.h"
#include "tokenizer/tokenizer.h"
#include "train/recipe.h"

namespace lockstep {

// What evaluation needs to know of a run or of a command line.
struct EvaluationSources {
  std::vector<Surface> surfaces = {};
  std::string mix = {};
  std::string base_directory = {};
  std::string tokenizer_name = {};
  TokenWidth token_type = TokenWidth::k32;
  std::int64_t sequence_length = 0;  // of held-out text; 0: the model's context
  std::string tokenizer_file = {};
  std::int64_t batch = 8;
  std::int64_t max_documents = 0;
  std::vector<std::string> tasks = {};  // empty: the usual ones
  std::string tasks_data = {};
  std::string tasks_dir = {};
  FewshotOptions fewshot = {};
  std::size_t limit = 0;
  PrefixReuse reuse = PrefixReuse::kYes;
  std::int64_t task_length = 0;  // contexts are cut here; 0: the model's context
  std::string reference = {};
  Precision reference_precision = Precision::kFp32;
  HfImportOptions reference_import = {};
  std::int64_t kl_tokens = 0;
  [[nodiscard]] bool has(Surface surface) const;
};

// As the recipe says, [eval] first.
[[nodiscard]] EvaluationSources evaluation_sources(const Recipe& recipe);

// Opens and checks the files of each surface for a model of this shape. Throws kConfig when
// something that a surface needs is not named, kInput and kData for the files. `fs` and `stream`,
// which the reference runs in, must outlive the result.
[[nodiscard]] Surfaces open_surfaces(FileSystem& fs, const EvaluationSources& sources,
                                     const ModelConfig& model, CpuStream& stream);

[[nodiscard]] std::shared_ptr<const HeldoutDocuments> open_heldout(FileSystem& fs,
                                                                   const EvaluationSources& sources,
                                                                   const ModelConfig& model);

// kInput when it has more ids than the model.
[[nodiscard]] Tokenizer load_tokenizer(FileSystem& fs, const std::string& path,
                                       const ModelConfig& model);
// What stands for an empty context: the model's end of text, else the tokenizer's.
[[nodiscard]] std::int32_t context_prefix(const Tokenizer& tokenizer, const ModelConfig& model);

// The directory of the reference for a step: `reference` itself when it is a Hugging Face directory
// or a checkpoint, else the checkpoint of that step of the run or bundle, nothing when there is
// none. kInput when it is none of these.
[[nodiscard]] std::optional<std::string> reference_directory(FileSystem& fs,
                                                             const std::string& reference,
                                                             std::int64_t step);

// Writes, keeping the surfaces of `path` that were not evaluated again. Errors as read_evaluation()
// and merge().
void write_evaluation(FileSystem& fs, const std::string& path, const Evaluation& evaluation);

// RUN/evals/step-NNNNNNNN.json.
[[nodiscard]] std::string evaluation_path(const std::string& run, std::int64_t step);

}  // namespace lockstep
