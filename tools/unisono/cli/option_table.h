// The options of a command, as data. One table per command yields parsing, --help, the man page and
// shell completion.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace unisono::cli {

class Arguments;
class Console;

struct Option {
  std::string_view name;        // long form, without dashes
  char letter = 0;              // short form; 0: none
  std::string_view value = {};  // name of the value in help: "SIZE"; empty: a switch
  std::string_view help = {};
  std::string_view fallback = {};  // the value when it is not given, as text
  std::string_view choices = {};   // "text|json": the only values allowed
  bool repeats = false;            // may be given several times
};

struct Example {
  std::string_view command;
  std::string_view what;
};

struct Command {
  std::string_view name;
  std::string_view summary;
  std::string_view operands;  // "ALGORITHM | FILE"; empty: none
  int max_operands = 0;       // -1: any number
  bool runs_program = false;  // everything after the options is another program's command line
  std::array<Example, 3> examples;
  std::string_view description;  // paragraphs divided by an empty line
  std::span<const Option> options;
  int (*run)(const Arguments& arguments, const Console& console);
};

// Options that every command has.
std::span<const Option> common_options();
// The command's own options, then the common ones.
std::vector<Option> all_options(const Command& command);
// "text|json" -> {"text", "json"}.
std::vector<std::string_view> split_choices(std::string_view choices);

}  // namespace unisono::cli
