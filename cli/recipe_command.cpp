#include "cli/command.h"
#include "config/print.h"
#include "train/recipe.h"

namespace lockstep::cli {
namespace {

constexpr const char* kIntroduction =
    "Made by `lockstep recipe reference`. A recipe is a TOML file with these sections; on the\n"
    "command line, `section.key=value` overrides a key. Unknown keys, wrong types and values out\n"
    "of range are errors.\n\n";

}  // namespace

void add_recipe_command(CLI::App& app, Context& context) {
  CLI::App* group = app.add_subcommand("recipe", "What a recipe may say");
  group->require_subcommand(1);
  context.add(
      *group, "reference", "Every key of a recipe as Markdown: default, rule, meaning", [&context] {
        context.say(
            concat("# Every key of a recipe\n\n", kIntroduction, config_reference<Recipe>()));
        OrderedJson document;
        document["defaults"] = OrderedJson::parse(config_json(Recipe{}));
        context.result(document);
        return 0;
      });
}

}  // namespace lockstep::cli
