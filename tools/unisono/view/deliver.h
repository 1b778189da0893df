// Delivers a page: into a file, to the desktop, or to standard output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/arguments.h"
#include "cli/console.h"

namespace unisono::cli {

// Adds to `data` what each page has, and writes the page as --output, --no-open and --lang say,
// else to a file called `name`. The exit code.
int deliver_page(nlohmann::ordered_json data, const std::string& name, const Arguments& arguments,
                 const Console& console);

}  // namespace unisono::cli
