#include <memory>

#include "base/text.h"
#include "checkpoint/average.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/paths.h"
#include "cli/command.h"
#include "cli/model_source.h"

namespace lockstep::cli {
namespace {

// A run directory, a directory of checkpoints, or one checkpoint: the directory of checkpoints.
std::string checkpoints_of(FileSystem& fs, const std::string& path) {
  const std::string inside = join_path(path, paths::kCheckpoints);
  return fs.is_directory(inside) ? inside : path;
}

int list(Context& context, const std::string& path) {
  FileSystem& fs = FileSystem::real();
  const std::string directory = checkpoints_of(fs, path);
  if (!fs.is_directory(directory)) {
    fail(ErrorKind::kInput, printable(path), ": no such directory");
  }
  OrderedJson document;
  document["directory"] = directory;
  document["checkpoints"] = OrderedJson::array();
  const auto steps = list_checkpoints(fs, directory);
  for (const std::int64_t step : steps) {
    const std::string name = paths::checkpoint_name(step);
    OrderedJson entry;
    entry["step"] = step;
    entry["path"] = join_path(directory, name);
    try {
      const CheckpointReader reader(fs, join_path(directory, name));
      entry["bytes"] = reader.bytes();
      entry["tokens"] = reader.state().tokens;
      entry["precision"] = reader.state().precision;
      entry["kernel_set"] = reader.state().kernel_set;
      context.say(name, "  ", human_bytes(reader.bytes()), "  ", with_commas(reader.state().tokens),
                  " tokens  ", reader.state().precision, "  ", reader.state().kernel_set);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      entry["damaged"] = error.what();
      context.say(name, "  DAMAGED: ", error.what());
    }
    document["checkpoints"].push_back(entry);
  }
  if (steps.empty()) context.say(printable(directory), ": no checkpoints");
  context.result(document);
  return 0;
}

// One checkpoint, or every one of a run when the path is not a checkpoint itself.
std::vector<std::string> targets(FileSystem& fs, const std::string& path) {
  if (fs.exists(join_path(path, paths::kManifest))) return {path};
  const std::string directory = checkpoints_of(fs, path);
  std::vector<std::string> all;
  for (const std::int64_t step : list_checkpoints(fs, directory)) {
    all.push_back(join_path(directory, paths::checkpoint_name(step)));
  }
  if (all.empty()) {
    fail(ErrorKind::kInput, printable(path),
         ": neither a checkpoint nor a directory that holds some");
  }
  return all;
}

int verify(Context& context, const std::string& path) {
  FileSystem& fs = FileSystem::real();
  OrderedJson document;
  document["checkpoints"] = OrderedJson::array();
  int code = 0;
  for (const auto& target : targets(fs, path)) {
    OrderedJson entry;
    entry["path"] = target;
    try {
      const CheckpointReader reader(fs, target);
      reader.verify();
      entry["ok"] = true;
      entry["bytes"] = reader.bytes();
      context.say(printable(target), ": whole, ", human_bytes(reader.bytes()), " read");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      entry["ok"] = false;
      entry["error"] = error.what();
      context.say("DAMAGED: ", error.what());
      code = exit_code(error.kind());
    }
    document["checkpoints"].push_back(entry);
  }
  context.result(document);
  return code;
}

int digest(Context& context, const std::string& path) {
  const auto all = targets(FileSystem::real(), path);
  const CheckpointReader reader(FileSystem::real(), all.back());
  reader.verify();
  OrderedJson document;
  document["path"] = all.back();
  document["step"] = reader.state().step;
  document["digest"] = reader.digest();
  if (!context.json()) context.say(reader.digest());
  context.result(document);
  return 0;
}

struct AverageCommand {
  std::vector<std::string> models;
  std::string out;
  std::string dtype = "f32";
};

int average(Context& context, const AverageCommand& command) {
  FileSystem& fs = FileSystem::real();
  if (command.dtype != "bf16" && command.dtype != "f32") {
    fail(ErrorKind::kConfig, "--dtype ", printable(command.dtype), ": must be f32 or bf16");
  }
  std::vector<AverageSource> sources;
  for (const auto& path : command.models) {
    std::string tokenizer = tokenizer_path(fs, path, "");
    if (!fs.exists(tokenizer)) tokenizer.clear();  // a run's recipe may name one that has gone
    sources.push_back({model_directory(fs, path), tokenizer});
  }
  const AverageReport report =
      average_models(fs, sources, command.out,
                     {.dtype = command.dtype == "f32" ? StoredDType::kF32 : StoredDType::kBF16,
                      .progress = [&](std::int64_t done, std::int64_t all) {
                        context.progress(concat("averaging: ", done * 100 / all, "%"));
                      }});
  context.end_progress();
  OrderedJson document;
  document["out"] = command.out;
  document["weights"] = report.weights;
  document["files"] = report.files;
  document["sources"] = OrderedJson::array();
  for (const auto& source : report.sources) {
    document["sources"].push_back(
        {{"directory", source.directory},
         {"step", source.step < 0 ? OrderedJson(nullptr) : OrderedJson(source.step)},
         {"weights", source.weights}});
    context.say(source.weights, "  ", printable(source.directory));
  }
  context.say(printable(command.out), ": the mean of ", report.sources.size(), " models, ",
              report.weights);
  context.result(document);
  return 0;
}

}  // namespace

void add_checkpoint_command(CLI::App& app, Context& context) {
  CLI::App* group =
      app.add_subcommand("checkpoint", "Lists, verifies, digests and averages checkpoints");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, const char* path_help,
                       int (*action)(Context&, const std::string&)) {
    const auto path = std::make_shared<std::string>();
    context.add(*group, name, help, [&context, path, action] { return action(context, *path); })
        ->add_option("PATH", *path, path_help)
        ->required();
  };
  add("ls", "Lists the whole checkpoints of a run", "A run directory or its checkpoints/", list);
  add("verify", "Reads every byte of a checkpoint, or of all of a run, against its checksum",
      "A checkpoint or a run directory", verify);
  add("digest",
      "Prints one hash over all state: weights, moments, counters, skip window (of the newest "
      "checkpoint when given a run)",
      "A checkpoint or a run directory", digest);
  const auto options = std::make_shared<AverageCommand>();
  CLI::App* mean = context.add(*group, "average",
                               "Averages the weights of checkpoints of one model (a \"soup\")",
                               [&context, options] { return average(context, *options); });
  mean->add_option("MODEL", options->models,
                   "Two or more checkpoints, runs (their newest) or Hugging Face directories")
      ->required();
  mean->add_option("-o,--out", options->out, "The Hugging Face directory to make")->required();
  mean->add_option("--dtype", options->dtype, "f32 or bf16 (f32)");
}

}  // namespace lockstep::cli
