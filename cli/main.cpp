// lockstep: pre-trains Olmo-3-family language models and proves that a run reproduces another one.

#include <csignal>
#include <cstdio>
#include <new>

#include "base/text.h"
#include "cli/command.h"

namespace lockstep::cli {
namespace {

int report(Context& context, ErrorKind kind, const char* text) {
  context.end_progress();
  std::fprintf(stderr, "lockstep: error: %s\n", text);
  if (context.json()) {
    OrderedJson document;
    document["error"] = text;
    document["exit_code"] = exit_code(kind);
    context.result(document);
  }
  return exit_code(kind);
}

// One line a command, in the order of --help.
void add_commands(CLI::App& app, Context& context) {
  add_train_command(app, context);
  add_init_command(app, context);
  add_eval_command(app, context);
  add_ablate_command(app, context);
  add_tokenize_command(app, context);
  add_data_command(app, context);
  add_compare_command(app, context);
  add_parity_command(app, context);
  add_report_command(app, context);
  add_dashboard_command(app, context);
  add_generate_command(app, context);
  add_import_hf_command(app, context);
  add_export_hf_command(app, context);
  add_checkpoint_command(app, context);
  add_tokenizer_command(app, context);
  add_recipe_command(app, context);
  add_bench_command(app, context);
  add_completion_command(app, context);
}

// CLI11 says of a mistyped command only that one is required.
void check_command(const CLI::App& app, const std::string& word) {
  if (word.starts_with("-")) return;
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
    if (names.back() == word) return;
  }
  const std::string nearest = nearest_name(word, names);
  fail(ErrorKind::kConfig, "no command ", printable(word),
       nearest.empty() ? "" : "; did you mean " + nearest + "?", " (see --help)");
}

int run(int argc, char** argv) {
  CLI::App app("Pre-trains Olmo-3-family language models and proves that a run reproduces another.",
               "lockstep");
  app.require_subcommand(1);
  app.set_version_flag("--version", LOCKSTEP_VERSION);
  app.get_formatter()->column_width(36);
  Context context;
  add_commands(app, context);
  try {
    if (argc > 1) check_command(app, argv[1]);
    app.parse(argc, argv);
    return context.run();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return report(context, ErrorKind::kConfig, concat(error.what(), "; see --help").c_str());
  } catch (const Error& error) {
    return report(context, error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return report(context, ErrorKind::kIo, "out of memory; use a smaller model or microbatch");
  } catch (const std::exception& error) {
    return report(context, ErrorKind::kBug, error.what());
  }
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away must not end a training run
  return lockstep::cli::run(argc, argv);
}
