// Prints option tables in the forms that people and shells read.
#pragma once

#include <string>
#include <string_view>

#include "cli/option_table.h"

namespace unisono::cli {

// Wraps lines at `width` columns, and at a limit beyond which lines are hard to read.
std::string overview_text(int width);                      // `unisono help`
std::string help_text(const Command& command, int width);  // `unisono help show`

std::string help_json(const Command* command);          // nullptr: every command
std::string man_page(const Command* command);           // roff; nullptr: unisono(1)
std::string completion_script(std::string_view shell);  // bash, zsh or fish

}  // namespace unisono::cli
