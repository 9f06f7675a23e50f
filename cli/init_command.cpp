#include <memory>

#include "base/text.h"
#include "checkpoint/hf_export.h"
#include "cli/command.h"
#include "model/counts.h"
#include "model/init.h"
#include "train/recipe.h"

namespace lockstep::cli {
namespace {

struct InitOptions {
  std::string recipe;
  std::vector<std::string> overrides;
  std::string out;
  bool unpadded = false;
  bool overwrite = false;
};

int run_init(Context& context, const InitOptions& options) {
  const Recipe recipe = read_recipe(options.recipe, options.overrides);
  ModelConfig config = recipe.model;
  config.padded_vocab_size = options.unpadded ? config.vocab_size : config.vocab_rows();
  const InitConfig init{.seed = static_cast<std::uint64_t>(recipe.init.seed),
                        .std = config.init_std};
  const auto files =
      export_hf(FileSystem::real(), options.out, config,
                {.dtype = StoredDType::kF32, .overwrite = options.overwrite},
                [&](const Parameter& parameter, std::int64_t first, std::span<float> out) {
                  initial_values(parameter, init, first, out);
                  context.progress(concat("writing ", parameter.name));
                });
  context.end_progress();
  OrderedJson document;
  document["out"] = options.out;
  document["seed"] = init.seed;
  document["parameters"] = parameter_count(config);
  document["vocab_size"] = config.vocab_size;
  document["vocab_rows"] = config.vocab_rows();
  document["files"] = files;
  context.say(printable(options.out), ": ", with_commas(parameter_count(config)),
              " initial weights from seed ", init.seed);
  context.result(document);
  return 0;
}

}  // namespace

void add_init_command(CLI::App& app, Context& context) {
  const auto options = std::make_shared<InitOptions>();
  CLI::App* command =
      context.add(app, "init", "Writes a recipe's initial weights in Hugging Face's format, fp32",
                  [&context, options] { return run_init(context, *options); });
  command->add_option("RECIPE", options->recipe, "A recipe (TOML)")->required();
  command->add_option("KEY=VALUE", options->overrides, "Overrides of the recipe's keys");
  command->add_option("-o,--out", options->out, "The directory to make")->required();
  command->add_flag("--unpadded", options->unpadded,
                    "Leave out the rows that pad the vocabulary (they take part in training)");
  command->add_flag("--overwrite", options->overwrite, "Replace a model that is in -o");
}

}  // namespace lockstep::cli
