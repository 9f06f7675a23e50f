#include <memory>

#include "cli/command.h"
#include "config/fields.h"
#include "train/recipe.h"

namespace lockstep::cli {
namespace {

// One command's line of the script's table.
struct Words {
  std::string commands;  // subcommands
  std::string options;   // "--json -o --out"
  std::string valued;    // of these, those that take a value
  bool takes_keys = false;
};

void put(std::string& list, const std::string& word) { list += (list.empty() ? "" : " ") + word; }

Words words_of(const CLI::App& app) {
  Words words;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    put(words.commands, command->get_name());
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      words.takes_keys = words.takes_keys || option->get_name() == "KEY=VALUE";
      continue;
    }
    for (const auto& names : {option->get_snames(), option->get_lnames()}) {
      for (const auto& name : names) {
        const std::string word = (name.size() == 1 ? "-" : "--") + name;
        put(words.options, word);
        if (option->get_items_expected_max() > 0) put(words.valued, word);
      }
    }
  }
  return words;
}

// A case of the script for the command and for all below it.
void put_cases(std::string& script, const CLI::App& app, const std::string& path) {
  const Words words = words_of(app);
  script += concat("    '", path, "')\n      commands='", words.commands, "'\n      options='",
                   words.options, "'\n      valued='", words.valued,
                   "'\n      takes_keys=", words.takes_keys ? "yes" : "", "\n      ;;\n");
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    put_cases(script, *command, path + " " + command->get_name());
  }
}

std::string recipe_keys() {
  Recipe recipe;
  std::string keys;
  for (const Field& field : fields_of(recipe).fields) put(keys, field.path + "=");
  return keys;
}

constexpr const char* kComplete = R"(
_lockstep() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local command='lockstep' word='' index=1 given=0
  local commands='' options='' valued='' takes_keys=''
  _lockstep_command "$command"
  while [ "$index" -lt "$COMP_CWORD" ]; do
    word="${COMP_WORDS[index]}"
    index=$((index + 1))
    case " $commands " in
      *" $word "*)
        command="$command $word"
        _lockstep_command "$command"
        continue
        ;;
    esac
    case "$word" in
      -*) ;;
      *) given=$((given + 1)) ;;
    esac
  done
  COMPREPLY=()
  case " $valued " in
    *" $previous "*) return ;;  # a value: a file, as a rule
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *)
      if [ -n "$commands" ]; then
        COMPREPLY=($(compgen -W "$commands" -- "$current"))
      elif [ -n "$takes_keys" ] && [ "$given" -gt 0 ] && [ "$previous" != '=' ]; then
        COMPREPLY=($(compgen -W "$_lockstep_keys" -- "$current"))
        if [ "${#COMPREPLY[@]}" -gt 0 ]; then compopt -o nospace 2>/dev/null; fi
      fi
      ;;
  esac
}
complete -o default -o bashdefault -F _lockstep lockstep
)";

std::string bash_script(const CLI::App& root) {
  std::string script = concat("# Completion for lockstep ", LOCKSTEP_VERSION,
                              "; made by `lockstep completion`.\n_lockstep_keys='", recipe_keys(),
                              "'\n\n_lockstep_command() {\n  case \"$1\" in\n");
  put_cases(script, root, "lockstep");
  return script + "  esac\n}\n" + kComplete;
}

int print(Context& context, const CLI::App& root, bool zsh) {
  std::string script = bash_script(root);
  if (zsh) {
    // As a file of $fpath it is run at the first completion, in place of the function it defines.
    script =
        "#compdef lockstep\nautoload -U +X bashcompinit && bashcompinit\n" + script +
        "if [ \"${funcstack[1]}\" = _lockstep ]; then _bash_complete -o default -F _lockstep; fi\n";
  }
  if (!context.json()) {
    script.pop_back();  // say() ends the line
    context.say(std::string_view(script));
  }
  OrderedJson document;
  document["script"] = script;
  context.result(document);
  return 0;
}

}  // namespace

void add_completion_command(CLI::App& app, Context& context) {
  CLI::App* group = app.add_subcommand("completion", "Prints a script that completes commands");
  group->require_subcommand(1);
  context.add(*group, "bash", "For bash: source <(lockstep completion bash)",
              [&context, &app] { return print(context, app, false); });
  context.add(*group, "zsh", "For zsh: source <(lockstep completion zsh)",
              [&context, &app] { return print(context, app, true); });
}

}  // namespace lockstep::cli
