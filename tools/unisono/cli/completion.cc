// Completion scripts for bash, zsh and fish, from the option tables.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/help.h"

namespace unisono::cli {
namespace {

std::vector<std::string> flags_of(const Command& command) {
  std::vector<std::string> flags;
  for (const Option& option : all_options(command)) {
    flags.push_back(fmt::format("--{}", option.name));
    if (option.letter != 0) {
      flags.push_back(fmt::format("-{}", option.letter));
    }
  }
  return flags;
}

// Quotes a text for use inside single quotes in all three shells.
std::string quoted(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "’";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      result += '\\';
      result += c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string command_names() {
  std::string names;
  for (const Command* command : commands()) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command->name);
  }
  return names;
}

constexpr std::string_view kBashHead = R"sh(# bash completion for unisono
_unisono() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
)sh";

std::string bash() {
  std::string text(kBashHead);
  text += fmt::format("    COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n    return\n  fi\n",
                      command_names());
  text += "  case \"$verb $before\" in\n";
  for (const Command* command : commands()) {
    for (const Option& option : all_options(*command)) {
      if (!option.choices.empty()) {
        text +=
            fmt::format("    '{} --{}') COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                        command->name, option.name, fmt::join(split_choices(option.choices), " "));
      }
    }
  }
  text += "  esac\n  case \"$verb\" in\n";
  for (const Command* command : commands()) {
    text += fmt::format("    {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")) ;;\n", command->name,
                        fmt::join(flags_of(*command), " "));
  }
  text += R"sh(  esac
  case "$verb:$word" in
    *:-*) ;;
    show:*|verify:*|sim:*)
      COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" list --names 2>/dev/null)" -- "$word")
                 $(compgen -f -- "$word")) ;;
    bench:*|plan:*|list:*)
      COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" list --collectives 2>/dev/null)" -- "$word")) ;;
    help:*) COMPREPLY=($(compgen -W ')sh";
  text += command_names();
  text += R"sh(' -- "$word")) ;;
    completion:*) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$word")) ;;
    run:*) COMPREPLY=($(compgen -c -f -- "$word")) ;;
  esac
}
complete -o default -F _unisono unisono
)sh";
  return text;
}

std::string zsh() {
  std::string text = "#compdef unisono\n_unisono() {\n  local -a verbs\n  verbs=(\n";
  for (const Command* command : commands()) {
    text += fmt::format("    '{}:{}'\n", command->name, quoted(command->summary));
  }
  text +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command verbs\n    return\n  fi\n"
      "  local verb=$words[2]\n  shift words; (( CURRENT-- ))\n  case $verb in\n";
  for (const Command* command : commands()) {
    text += fmt::format("    {})\n      _arguments \\\n", command->name);
    for (const Option& option : all_options(*command)) {
      std::string action;
      if (!option.choices.empty()) {
        action = fmt::format(":{}:({})", quoted(option.value),
                             fmt::join(split_choices(option.choices), " "));
      } else if (!option.value.empty()) {
        action = fmt::format(":{}:_files", quoted(option.value));
      }
      text += fmt::format("        '--{}[{}]{}' \\\n", option.name, quoted(option.help), action);
      if (option.letter != 0) {
        text += fmt::format("        '-{}[{}]{}' \\\n", option.letter, quoted(option.help), action);
      }
    }
    const std::string_view operand =
        command->runs_program ? "_command_names -e"
        : command->name == "show" || command->name == "verify" || command->name == "sim"
            ? "_unisono_algorithms"
        : command->name == "bench" || command->name == "plan" || command->name == "list"
            ? "_unisono_collectives"
        : command->name == "help"       ? "_unisono_verbs"
        : command->name == "completion" ? "(bash zsh fish)"
        : command->name == "topo"       ? "_files"
                                        : "";
    text += fmt::format("        '*::operand:{}'\n      ;;\n", operand);
  }
  text += "  esac\n}\n";
  text += "_unisono_algorithms() { compadd $(unisono list --names 2>/dev/null); _files }\n";
  text += "_unisono_collectives() { compadd $(unisono list --collectives 2>/dev/null) }\n";
  text += fmt::format("_unisono_verbs() {{ compadd {} }}\n", command_names());
  return text + "_unisono \"$@\"\n";
}

std::string fish() {
  std::string text = "# fish completion for unisono\ncomplete -c unisono -f\n";
  for (const Command* command : commands()) {
    text += fmt::format("complete -c unisono -n __fish_use_subcommand -a {} -d '{}'\n",
                        command->name, quoted(command->summary));
  }
  for (const Command* command : commands()) {
    const std::string when =
        fmt::format("complete -c unisono -n '__fish_seen_subcommand_from {}'", command->name);
    for (const Option& option : all_options(*command)) {
      text += fmt::format("{} -l {}", when, option.name);
      if (option.letter != 0) {
        text += fmt::format(" -s {}", option.letter);
      }
      if (!option.choices.empty()) {
        text += fmt::format(" -x -a '{}'", fmt::join(split_choices(option.choices), " "));
      } else if (!option.value.empty()) {
        text += " -r";
      }
      text += fmt::format(" -d '{}'\n", quoted(option.help));
    }
  }
  text +=
      "complete -c unisono -n '__fish_seen_subcommand_from show verify sim' -F -a '(unisono list "
      "--names)'\n"
      "complete -c unisono -n '__fish_seen_subcommand_from bench plan list' -a '(unisono list "
      "--collectives)'\n"
      "complete -c unisono -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n";
  text += fmt::format("complete -c unisono -n '__fish_seen_subcommand_from help' -a '{}'\n",
                      command_names());
  return text + "complete -c unisono -n '__fish_seen_subcommand_from run' -F\n";
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") {
    return bash();
  }
  return shell == "zsh" ? zsh() : fish();
}

}  // namespace unisono::cli
