#include "cli/model_source.h"

#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/paths.h"
#include "train/recipe.h"

namespace lockstep::cli {

void add_machine_options(CLI::App& command, MachineOptions& options) {
  command.add_option("--threads", options.threads, "Threads; default: the CPUs of this process")
      ->check(CLI::Range(1, 4096));
  command.add_option("--isa", options.isa,
                     "Kernels: auto, portable, avx2, avx512 or avx512_bf16 (auto)");
}

CpuStream make_stream(const MachineOptions& options) {
  const int threads = options.threads > 0 ? options.threads : ThreadPool::available_cpus();
  return CpuStream(threads, options.isa == "auto" ? default_isa() : isa_from_name(options.isa));
}

void add_import_options(CLI::App& command, HfImportOptions& options) {
  command
      .add_option("--vocab-size", options.vocab_size,
                  "Real token ids, where config.json counts padded rows too")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 24));
  command.add_flag("--rope-scaling-on-all-layers", options.rope_scaling_on_all_layers,
                   "Stretch the rotary embedding of sliding layers too, as some tooling does");
}

std::string model_directory(FileSystem& fs, const std::string& path) {
  if (fs.exists(join_path(path, paths::kHfConfig))) return path;
  const std::string checkpoints = join_path(path, paths::kCheckpoints);
  if (fs.is_directory(checkpoints)) {
    const auto steps = list_checkpoints(fs, checkpoints);
    if (!steps.empty()) return join_path(checkpoints, paths::checkpoint_name(steps.back()));
    fail(ErrorKind::kInput, printable(path), ": a run without a checkpoint yet");
  }
  fail(ErrorKind::kInput, printable(path),
       ": holds no config.json; wanted a Hugging Face "
       "directory, a checkpoint or a run");
}

std::string tokenizer_path(FileSystem& fs, const std::string& path, const std::string& given) {
  if (!given.empty()) return given;
  constexpr const char* kName = "tokenizer.json";
  const std::string directory = model_directory(fs, path);
  // A checkpoint lies in RUN/checkpoints/.
  const std::string run = parent_directory(parent_directory(directory));
  for (const std::string& place : {directory, path, run}) {
    if (fs.exists(join_path(place, kName))) return join_path(place, kName);
  }
  for (const std::string& place : {directory, run}) {
    const std::string recipe = join_path(place, paths::kRecipe);
    if (!fs.exists(recipe)) continue;
    const std::string file = read_recipe(recipe).data.tokenizer_file;
    if (!file.empty()) return file;
  }
  return "";
}

std::unique_ptr<Model> load_model(const HfModel& source, const ModelOptions& options,
                                  CpuStream& stream) {
  auto model = std::make_unique<Model>(source.config(), options, stream);
  source.load(model->table(), model->weights(), stream.pool());
  model->refresh();
  return model;
}

Precision precision_of_name(const std::string& name) {
  const auto precision = from_name<Precision>(name);
  if (!precision) {
    fail(ErrorKind::kConfig, "precision ", printable(name), ": must be fp32 or bf16");
  }
  return *precision;
}

}  // namespace lockstep::cli
