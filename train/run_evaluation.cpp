#include "train/run_evaluation.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/paths.h"
#include "data/mix.h"
#include "eval/token_bytes.h"

namespace lockstep {
namespace {

TasksPart open_tasks(FileSystem& fs, const EvaluationSources& sources, const ModelConfig& model,
                     ThreadPool& pool) {
  if (sources.tasks_data.empty()) {
    fail(ErrorKind::kConfig,
         "tasks: name the directory of their data sets with eval.tasks_data or --data");
  }
  if (sources.tokenizer_file.empty()) {
    fail(ErrorKind::kConfig,
         "tasks: name the tokenizer with data.tokenizer_file or --tokenizer, or put "
         "tokenizer.json beside the model");
  }
  const auto& names = sources.tasks.empty() ? usual_tasks() : sources.tasks;
  const auto choices = choose_tasks(fs, names, sources.tasks_dir, "tasks");
  const Tokenizer tokenizer = load_tokenizer(fs, sources.tokenizer_file, model);
  const std::int32_t prefix = context_prefix(tokenizer, model);
  constexpr std::int64_t kPositions = 512;  // of one sequence, as a rule
  const auto examples = sources.fewshot.ids.empty()
                            ? static_cast<std::int64_t>(sources.fewshot.count)
                            : std::ssize(sources.fewshot.ids);
  TasksPart part{.tasks = {},
                 .fewshot = examples,
                 .tokens = sources.batch * kPositions,
                 .reuse = sources.reuse};
  for (const TaskChoice& choice : choices) {
    auto questions =
        read_task(fs, choice.task, sources.tasks_data,
                  {.fewshot = sources.fewshot, .limit = sources.limit, .only = choice.only});
    part.tasks.push_back(
        {.name = choice.name,
         .encoded = encode_task(
             choice.task, std::move(questions), tokenizer, prefix,
             sources.task_length > 0 ? sources.task_length : model.context_length, pool)});
  }
  return part;
}

std::unique_ptr<Model> load_reference(FileSystem& fs, const std::string& directory,
                                      const EvaluationSources& sources, CpuStream& stream) {
  const HfModel source(fs, directory, sources.reference_import);
  auto model = std::make_unique<Model>(
      source.config(),
      ModelOptions{.precision = sources.reference_precision, .use = Weights::Use::kForward},
      stream);
  source.load(model->table(), model->weights(), stream.pool());
  model->refresh();
  return model;
}

KlPart open_kl(FileSystem& fs, const EvaluationSources& sources, const ModelConfig& model,
               CpuStream& stream, std::shared_ptr<const InstanceSource> documents) {
  if (sources.reference.empty()) {
    fail(ErrorKind::kConfig, "token KL: name the reference with eval.reference or --reference");
  }
  // One that does not depend on the step can be checked now.
  if (fs.exists(join_path(sources.reference, paths::kHfConfig))) {
    const HfModel source(fs, sources.reference, sources.reference_import);
    if (source.config().vocab_size != model.vocab_size) {
      fail(ErrorKind::kInput, printable(sources.reference), ": a vocabulary of ",
           source.config().vocab_size, " ids, the model has ", model.vocab_size,
           "; wanted a reference with the same tokenizer (--vocab-size where config.json counts "
           "padded rows)");
    }
  } else {
    static_cast<void>(reference_directory(fs, sources.reference, 0));
  }
  return {.documents = std::move(documents),
          .max_tokens = sources.kl_tokens,
          .name = sources.reference,
          .reference = [&fs, &stream, sources](std::int64_t step) -> std::unique_ptr<Model> {
            const auto directory = reference_directory(fs, sources.reference, step);
            return directory ? load_reference(fs, *directory, sources, stream) : nullptr;
          }};
}

}  // namespace

bool EvaluationSources::has(Surface surface) const {
  return std::find(surfaces.begin(), surfaces.end(), surface) != surfaces.end();
}

EvaluationSources evaluation_sources(const Recipe& recipe) {
  const EvalConfig& eval = recipe.eval;
  EvaluationSources sources;
  sources.surfaces = eval.surfaces;
  sources.mix = eval.mix;
  sources.base_directory = eval.base_dir.empty() ? recipe.data.base_dir : eval.base_dir;
  sources.tokenizer_name = eval.tokenizer.empty() ? recipe.data.tokenizer : eval.tokenizer;
  sources.token_type = recipe.data.token_type;
  sources.sequence_length = recipe.data.sequence_length;
  sources.tokenizer_file = recipe.data.tokenizer_file;
  sources.batch = eval.batch;
  sources.max_documents = eval.max_documents;
  sources.tasks = eval.tasks;
  sources.tasks_data = eval.tasks_data;
  sources.tasks_dir = eval.tasks_dir;
  sources.fewshot.count = static_cast<std::uint32_t>(eval.fewshot);
  sources.limit = static_cast<std::size_t>(eval.limit);
  sources.reference = eval.reference;
  sources.reference_precision = eval.reference_precision;
  sources.kl_tokens = eval.kl_tokens;
  return sources;
}

std::shared_ptr<const HeldoutDocuments> open_heldout(FileSystem& fs,
                                                     const EvaluationSources& sources,
                                                     const ModelConfig& model) {
  if (sources.mix.empty()) {
    fail(ErrorKind::kConfig,
         "held-out loss: name the manifest of held-out token files with eval.mix or --mix");
  }
  const std::int64_t length =
      sources.sequence_length > 0 ? sources.sequence_length : model.context_length;
  const HeldoutSpec spec{.base_directory = sources.base_directory,
                         .width = sources.token_type,
                         .end_of_text = static_cast<std::uint32_t>(model.eos_token_id),
                         .padding = 0,
                         .sequence_length = static_cast<std::uint64_t>(length),
                         .vocabulary = {.size = static_cast<std::uint32_t>(model.vocab_size),
                                        .rows = static_cast<std::uint32_t>(model.vocab_rows())}};
  return std::make_shared<const HeldoutDocuments>(
      fs, spec, read_mix(fs, sources.mix, sources.tokenizer_name));
}

Surfaces open_surfaces(FileSystem& fs, const EvaluationSources& sources, const ModelConfig& model,
                       CpuStream& stream) {
  Surfaces surfaces;
  std::shared_ptr<const HeldoutDocuments> documents;
  if (sources.has(Surface::kHeldout) || sources.has(Surface::kKl)) {
    documents = open_heldout(fs, sources, model);
  }
  if (sources.has(Surface::kHeldout)) {
    surfaces.heldout = {.documents = documents,
                        .bytes_of_token = {},
                        .batch = sources.batch,
                        .max_documents = sources.max_documents};
    if (!sources.tokenizer_file.empty()) {
      surfaces.heldout->bytes_of_token =
          bytes_of_tokens(Tokenizer::load(fs, sources.tokenizer_file), model.vocab_size);
    }
  }
  if (sources.has(Surface::kTasks)) {
    surfaces.tasks = open_tasks(fs, sources, model, stream.pool());
  }
  if (sources.has(Surface::kKl)) {
    surfaces.kl = open_kl(fs, sources, model, stream, documents);
  }
  return surfaces;
}

Tokenizer load_tokenizer(FileSystem& fs, const std::string& path, const ModelConfig& model) {
  Tokenizer tokenizer = Tokenizer::load(fs, path);
  if (tokenizer.vocab_size() > model.vocab_size) {
    fail(ErrorKind::kInput, printable(path), ": ", tokenizer.vocab_size(), " ids, the model has ",
         model.vocab_size, "; this is another model's tokenizer");
  }
  return tokenizer;
}

std::int32_t context_prefix(const Tokenizer& tokenizer, const ModelConfig& model) {
  if (model.eos_token_id >= 0) return static_cast<std::int32_t>(model.eos_token_id);
  return static_cast<std::int32_t>(tokenizer.eos_id().value_or(0));
}

std::optional<std::string> reference_directory(FileSystem& fs, const std::string& reference,
                                               std::int64_t step) {
  if (fs.exists(join_path(reference, paths::kHfConfig))) return reference;
  const std::string checkpoints = join_path(reference, paths::kCheckpoints);
  if (!fs.is_directory(checkpoints)) {
    fail(ErrorKind::kInput, printable(reference),
         ": neither a Hugging Face directory, nor a checkpoint, nor a run or bundle");
  }
  const std::string directory = join_path(checkpoints, paths::checkpoint_name(step));
  if (!fs.exists(join_path(directory, paths::kHfConfig))) return std::nullopt;
  return directory;
}

void write_evaluation(FileSystem& fs, const std::string& path, const Evaluation& evaluation) {
  fs.create_directories(parent_directory(path));
  const Evaluation whole =
      fs.exists(path) ? merge(read_evaluation(fs, path), evaluation, printable(path)) : evaluation;
  write_file_atomic(fs, path, std::string_view(to_json_text(whole)));
}

std::string evaluation_path(const std::string& run, std::int64_t step) {
  return join_path(join_path(run, paths::kEvals), paths::checkpoint_name(step) + ".json");
}

}  // namespace lockstep
