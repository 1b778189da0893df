#include "cli/option_table.h"

namespace unisono::cli {

std::span<const Option> common_options() {
  static constexpr Option kOptions[] = {
      {.name = "json", .help = "Print the result as JSON."},
      {.name = "color",
       .value = "WHEN",
       .help = "Colour the output. auto: only on terminals, unless NO_COLOR is set.",
       .fallback = "auto",
       .choices = "auto|always|never"},
      {.name = "quiet", .letter = 'q', .help = "Print only results and errors."},
      {.name = "verbose", .letter = 'v', .help = "Print more details on stderr."},
      {.name = "help", .letter = 'h', .help = "Show this help."}};
  return kOptions;
}

std::vector<Option> all_options(const Command& command) {
  std::vector<Option> options(command.options.begin(), command.options.end());
  options.insert(options.end(), common_options().begin(), common_options().end());
  return options;
}

std::vector<std::string_view> split_choices(std::string_view choices) {
  std::vector<std::string_view> words;
  while (!choices.empty()) {
    const std::size_t bar = choices.find('|');
    words.push_back(choices.substr(0, bar));
    choices = bar == std::string_view::npos ? std::string_view{} : choices.substr(bar + 1);
  }
  return words;
}

}  // namespace unisono::cli
