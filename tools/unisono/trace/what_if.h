// `unisono trace whatif`: simulates a recorded job with a change.
#pragma once

#include "cli/arguments.h"
#include "cli/console.h"

namespace unisono::cli {

// Returns the exit code.
int run_what_if(const Arguments& arguments, const Console& console);

}  // namespace unisono::cli
