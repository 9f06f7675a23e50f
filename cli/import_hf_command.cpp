#include <memory>
#include <optional>

#include "base/text.h"
#include "checkpoint/hf_export.h"
#include "checkpoint/hf_import.h"
#include "cli/command.h"
#include "cli/model_source.h"
#include "model/counts.h"

namespace lockstep::cli {
namespace {

struct ImportOptions {
  std::string source;
  std::string out;
  std::string dtype = "same";
  std::optional<std::int64_t> vocab_rows;
  bool overwrite = false;
  HfImportOptions import;
};

StoredDType out_dtype(const std::string& name, const HfModel& source) {
  if (name == "bf16") return StoredDType::kBF16;
  if (name == "f32") return StoredDType::kF32;
  if (name != "same") {
    fail(ErrorKind::kConfig, "--dtype ", printable(name), ": must be same, f32 or bf16");
  }
  for (const TensorInfo& tensor : source.tensors().tensors()) {
    if (tensor.dtype != StoredDType::kBF16) return StoredDType::kF32;
  }
  return StoredDType::kBF16;
}

int import_hf(Context& context, const ImportOptions& options) {
  FileSystem& fs = FileSystem::real();
  const HfModel source(fs, options.source, options.import);
  for (const std::string& field : source.ignored_fields()) {
    context.say("note: config.json: ", printable(field), " is not known here and was ignored");
  }
  ModelConfig config = source.config();
  if (options.vocab_rows) config.padded_vocab_size = *options.vocab_rows;
  config.validate();
  const StoredDType dtype = out_dtype(options.dtype, source);
  const auto total = static_cast<double>(parameter_count(config));
  double done = 0;
  const auto files =
      export_hf(fs, options.out, config, {.dtype = dtype, .overwrite = options.overwrite},
                [&](const Parameter& parameter, std::int64_t first, std::span<float> out) {
                  source.read(parameter, first, out);
                  done += static_cast<double>(out.size());
                  context.progress(concat("importing ", static_cast<int>(100 * done / total),
                                          " %  ", parameter.name));
                });
  context.end_progress();
  const auto tokenizer = copy_tokenizer_files(fs, options.source, options.out);
  OrderedJson document;
  document["out"] = options.out;
  document["tensors"] = source.tensors().tensors().size();
  document["parameters"] = parameter_count(config);
  document["vocab_size"] = config.vocab_size;
  document["vocab_rows"] = config.vocab_rows();
  document["dtype"] = name_of(dtype);
  document["files"] = files;
  document["copied"] = tokenizer;
  context.say(printable(options.out), ": ", source.tensors().tensors().size(), " tensors, ",
              human_count(total), " parameters, ", name_of(dtype), ", vocabulary ",
              config.vocab_size, " in ", config.vocab_rows(), " rows");
  context.result(document);
  return 0;
}

}  // namespace

void add_import_hf_command(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* command = context.add(
      app, "import-hf",
      "Checks a Hugging Face Olmo 3 model and writes it as one that training can start from",
      [&context, options] { return import_hf(context, *options); });
  command->add_option("DIR", options->source, "A Hugging Face directory")->required();
  command->add_option("-o,--out", options->out, "The directory to make")->required();
  command->add_option("--dtype", options->dtype,
                      "f32, bf16, or same: bf16 stays, all else becomes f32 (same)");
  command
      ->add_option("--vocab-rows", options->vocab_rows,
                   "Rows of embedding and head, at least the vocabulary; new rows are zeros "
                   "(default: as they are)")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 24));
  command->add_flag("--overwrite", options->overwrite, "Replace a model that is in -o");
  add_import_options(*command, options->import);
}

}  // namespace lockstep::cli
