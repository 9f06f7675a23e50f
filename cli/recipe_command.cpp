#include "cli/command.h"
#include "config/print.h"
#include "train/recipe.h"

namespace lockstep::cli {

void add_recipe_command(CLI::App& app, Context& context) {
  CLI::App* group = app.add_subcommand("recipe", "What a recipe may say");
  group->require_subcommand(1);
  context.add(*group, "reference", "Every key of a recipe as Markdown: default, rule, meaning",
              [&context] {
                context.say(config_reference<Recipe>());
                OrderedJson document;
                document["defaults"] = OrderedJson::parse(config_json(Recipe{}));
                context.result(document);
                return 0;
              });
}

}  // namespace lockstep::cli
