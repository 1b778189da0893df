// unisono: one binary, one command per verb. A table in the file of each command defines its
// options.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/env.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/language.h"
#include "cli/option_table.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

int fail(const Console& console, const UsageError& error) {
  print_error(console, "usage", error.what(), error.detail(), error.next());
  return kUsage;
}

// Returns the position of this rank when another one ended the operation; empty if it was in none.
std::string place_of(const ErrorContext& context) {
  if (context.op_seq < 0 || context.collective.empty()) {
    return {};
  }
  return fmt::format("rank {} was at step {} of {} #{}", context.rank, context.step,
                     context.collective, context.op_seq);
}

int fail(const Console& console, const Error& error) {
  print_error(console, to_string(error.code()), error.summary(), place_of(error.context()),
              error.hint());
  return exit_code(error.code());
}

// Uses the flag, otherwise the variable, otherwise the default.
std::string color_of(const Arguments& arguments) {
  const auto variable = read_env("UNISONO_COLOR");
  if (arguments.has("color") || !variable || variable->empty()) {
    return arguments.text("color");
  }
  if (*variable != "auto" && *variable != "always" && *variable != "never") {
    throw UsageError(fmt::format("UNISONO_COLOR cannot be '{}'", *variable),
                     "one of: auto, always, never", "unisono env");
  }
  return *variable;
}

int run_command(std::span<const std::string> words, Console& console) {
  const Command& command = command_of(words.front());
  const Arguments arguments = Arguments::parse(command, words.subspan(1));
  console = Console::make(color_of(arguments), arguments.has("json"), arguments.has("quiet"),
                          arguments.has("verbose"));
  if (arguments.has("help")) {
    fmt::print("{}", console.json() ? help_json(&command) : help_text(command, console.width()));
    return kDone;
  }
  for (const std::string& warning : unknown_env_warnings()) {
    console.note(localized(fmt::format("warning: {}", warning)));
  }
  return command.run(arguments, console);
}

int run_words(std::span<const std::string> words) {
  Console console = Console::make("auto", false, false, false);
  if (words.empty() || words.front() == "--help" || words.front() == "-h") {
    fmt::print(words.empty() ? stderr : stdout, "{}", overview_text(console.width()));
    return words.empty() ? kUsage : kDone;
  }
  if (std::find(words.begin(), words.end(), "--version") != words.end() &&
      std::all_of(words.begin(), words.end(), [](const std::string& word) {
        return word == "--version" || word == "--json";
      })) {
    if (words.size() == 1) {
      fmt::print("unisono {}\n", UNISONO_VERSION);
    } else {
      fmt::print("{{\"schema\": \"unisono.version/1\", \"version\": \"{}\"}}\n", UNISONO_VERSION);
    }
    return kDone;
  }
  try {
    const int code = run_command(words, console);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      print_error(console, "resource", "cannot write the output", {}, "is the disk full?");
      return kCouldNotRun;
    }
    return code;
  } catch (const UsageError& error) {
    return fail(console, error);
  } catch (const Error& error) {
    return fail(console, error);
  } catch (const std::bad_alloc&) {
    print_error(console, "resource", "out of memory", {}, {});
    return kCouldNotRun;
  } catch (const std::system_error& error) {  // from threads
    print_error(console, "resource", error.what(), {},
                "check the limits with ulimit -u and ulimit -v");
    return kCouldNotRun;
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) {  // reported by fmt
      print_error(console, "resource", error.what(), {}, "is the disk full?");
      return kCouldNotRun;
    }
    print_error(console, "internal", error.what(), {}, "this is a mistake in unisono: report it");
    return kCouldNotRun;
  }
}

}  // namespace
}  // namespace unisono::cli

int main(int argc, char** argv) {
  // Reports a file beyond ulimit -f as an error, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  const std::vector<std::string> words(argv + 1, argv + argc);
  return unisono::cli::run_words(words);
}
