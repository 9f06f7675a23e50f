#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace lockstep::cli {

// What a command needs of its surroundings: where text goes and what runs after parsing.
// With --json, stdout carries exactly one JSON document and human text goes to stderr.
class Context {
 public:
  [[nodiscard]] bool json() const { return json_; }

  // A line (or more) for people. A reader that has gone away is not an error.
  void say(std::string_view text);
  // True once whoever reads what say() writes has gone away: a filter may stop then.
  [[nodiscard]] bool reader_gone() const { return reader_gone_; }
  template <class... Parts>
  void say(const Parts&... parts) {
    say(std::string_view(concat(parts...)));
  }
  // The result for programs: printed with --json only, once.
  void result(const OrderedJson& document);

  // A progress line, redrawn in place on a terminal; elsewhere printed at most every ten seconds.
  void progress(std::string_view text);
  // Ends a progress line that is still on the terminal.
  void end_progress();

  // Declares the subcommand `name` of `parent` with --json; `action` runs after parsing and returns
  // the exit code.
  CLI::App* add(CLI::App& parent, const std::string& name, const std::string& help,
                std::function<int()> action);

  // Runs the action that parsing chose.
  [[nodiscard]] int run();

 private:
  bool json_ = false;
  bool printed_ = false;
  bool progress_shown_ = false;
  bool reader_gone_ = false;
  std::int64_t last_progress_ns_ = 0;
  std::function<int()> action_;
};

// One function a command file; main.cpp calls them all.
void add_train_command(CLI::App& app, Context& context);
void add_init_command(CLI::App& app, Context& context);
void add_recipe_command(CLI::App& app, Context& context);
void add_tokenize_command(CLI::App& app, Context& context);
void add_tokenizer_command(CLI::App& app, Context& context);
void add_data_command(CLI::App& app, Context& context);
void add_eval_command(CLI::App& app, Context& context);
void add_compare_command(CLI::App& app, Context& context);
void add_parity_command(CLI::App& app, Context& context);
void add_generate_command(CLI::App& app, Context& context);
void add_import_hf_command(CLI::App& app, Context& context);
void add_export_hf_command(CLI::App& app, Context& context);
void add_checkpoint_command(CLI::App& app, Context& context);
void add_bench_command(CLI::App& app, Context& context);
void add_report_command(CLI::App& app, Context& context);
void add_dashboard_command(CLI::App& app, Context& context);
void add_ablate_command(CLI::App& app, Context& context);
void add_completion_command(CLI::App& app, Context& context);

}  // namespace lockstep::cli
