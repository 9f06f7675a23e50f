#include <memory>

#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/paths.h"
#include "cli/command.h"

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

}  // namespace

void add_checkpoint_command(CLI::App& app, Context& context) {
  CLI::App* group = app.add_subcommand("checkpoint", "Lists, verifies and digests checkpoints");
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
}

}  // namespace lockstep::cli
