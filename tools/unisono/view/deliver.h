// Delivers a page: into a file, to the desktop, or to standard output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"

namespace unisono::cli {

// For commands whose page goes through deliver_page().
inline constexpr Option kServeOption = {
    .name = "serve",
    .value = "ADDRESS",
    .help =
        "Serve the page to browsers on other machines until Ctrl-C, instead of writing it. "
        "0.0.0.0:8000 is every interface of this host; use 127.0.0.1:8000 with ssh -L. Anybody who "
        "can reach the address can read the page."};

// Adds the common data of each page to `data`, and writes the page as --output, --no-open, --serve
// and --lang define; by default to a file called `name`. Returns the exit code.
int deliver_page(nlohmann::ordered_json data, const std::string& name, const Arguments& arguments,
                 const Console& console);

}  // namespace unisono::cli
