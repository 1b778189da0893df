#include "cli/wrap.h"

#include <algorithm>

namespace unisono::cli {

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
    if (!line.empty() && line.size() + 1 + word.size() > static_cast<std::size_t>(width - indent)) {
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

std::string times(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

}  // namespace unisono::cli
