#include "cli/wrap.h"

#include <algorithm>

#include "cli/console.h"

namespace unisono::cli {
namespace {

// Returns the text before the first space that is not in quotes.
std::string_view first_word(std::string_view command) {
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote == 0 && c == ' ') {
      return command.substr(0, i);
    }
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    }
  }
  return command;
}

}  // namespace

std::string wrap(std::string_view text, int indent, int width) {
  std::string result;
  std::string line;
  const auto end_line = [&] {
    result += std::string(static_cast<std::size_t>(indent), ' ') + line + "\n";
    line.clear();
  };
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    const bool paragraph = text.substr(word.size()).starts_with("\n\n");
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width - indent) {
      end_line();
    }
    line += line.empty() ? std::string(word) : " " + std::string(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (paragraph) {
      end_line();
      result += "\n";
      text.remove_prefix(1);
    }
  }
  if (!line.empty()) {
    end_line();
  }
  return result;
}

std::string labelled(std::string_view label, std::string_view text, int width) {
  const int indent = display_width(label);
  return std::string(label) + wrap(text, indent, width).substr(static_cast<std::size_t>(indent));
}

std::string wrap_command(std::string_view command, int indent, int width) {
  constexpr int kFurther = 4;
  constexpr int kBackslash = 2;
  std::string text;
  std::string line(static_cast<std::size_t>(indent), ' ');
  bool is_empty = true;
  while (!command.empty()) {
    const std::string_view word = first_word(command);
    command.remove_prefix(std::min(command.size(), word.size() + 1));
    const int room = width - (command.empty() ? 0 : kBackslash);
    if (!is_empty && display_width(line) + 1 + display_width(word) > room) {
      text += line + " \\\n";
      line.assign(static_cast<std::size_t>(indent + kFurther), ' ');
      is_empty = true;
    }
    line += (is_empty ? "" : " ") + std::string(word);
    is_empty = false;
  }
  return text + line + "\n";
}

std::string times(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

}  // namespace unisono::cli
