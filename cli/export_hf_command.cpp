#include <memory>

#include "base/text.h"
#include "checkpoint/hf_export.h"
#include "checkpoint/hf_import.h"
#include "cli/command.h"
#include "cli/model_source.h"
#include "model/counts.h"

namespace lockstep::cli {
namespace {

struct ExportOptions {
  std::string source;
  std::string out;
  std::string dtype = "bf16";
  std::string tokenizer;
  bool overwrite = false;
  HfImportOptions import;
};

void copy_tokenizer(FileSystem& fs, const ExportOptions& options, const std::string& directory,
                    std::vector<std::string>& copied) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;
  constexpr const char* kName = "tokenizer.json";
  copied = copy_tokenizer_files(fs, directory, options.out);
  const std::string path = tokenizer_path(fs, options.source, options.tokenizer);
  if (path.empty() || path == join_path(directory, kName)) return;
  write_file_atomic(fs, join_path(options.out, kName),
                    std::string_view(read_file(fs, path, kMaxBytes)));
  copied.emplace_back(kName);
}

int run_export(Context& context, const ExportOptions& options) {
  FileSystem& fs = FileSystem::real();
  if (options.dtype != "bf16" && options.dtype != "f32") {
    fail(ErrorKind::kConfig, "--dtype ", printable(options.dtype), ": must be bf16 or f32");
  }
  const std::string directory = model_directory(fs, options.source);
  const HfModel source(fs, directory, options.import);
  const ModelConfig config = without_padding(source.config());
  const StoredDType dtype = options.dtype == "f32" ? StoredDType::kF32 : StoredDType::kBF16;
  const auto files =
      export_hf(fs, options.out, config, {.dtype = dtype, .overwrite = options.overwrite},
                [&](const Parameter& parameter, std::int64_t first, std::span<float> out) {
                  source.read(parameter, first, out);
                  context.progress(concat("exporting ", parameter.name));
                });
  context.end_progress();
  std::vector<std::string> copied;
  copy_tokenizer(fs, options, directory, copied);
  OrderedJson document;
  document["source"] = directory;
  document["out"] = options.out;
  document["parameters"] = parameter_count(config);
  document["vocab_size"] = config.vocab_size;
  document["dtype"] = name_of(dtype);
  document["files"] = files;
  document["copied"] = copied;
  context.say(printable(options.out), ": ",
              human_count(static_cast<double>(parameter_count(config))), " parameters, ",
              name_of(dtype), ", vocabulary ", config.vocab_size,
              copied.empty() ? "; no tokenizer known" : "");
  context.result(document);
  return 0;
}

}  // namespace

void add_export_hf_command(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      context.add(app, "export-hf", "Writes a model in Hugging Face's format, without padded rows",
                  [&context, options] { return run_export(context, *options); });
  command->add_option("MODEL", options->source, "A run, a checkpoint or a Hugging Face directory")
      ->required();
  command->add_option("-o,--out", options->out, "The directory to make")->required();
  command->add_option("--dtype", options->dtype, "bf16 or f32 (bf16)");
  command->add_option("--tokenizer", options->tokenizer,
                      "A tokenizer.json to put beside it; default: the model's own");
  command->add_flag("--overwrite", options->overwrite, "Replace a model that is in -o");
  add_import_options(*command, options->import);
}

}  // namespace lockstep::cli
