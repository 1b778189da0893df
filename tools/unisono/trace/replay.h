// `unisono trace replay`: runs the collectives of a recording again.
#pragma once

#include <string>

#include "cli/console.h"

namespace unisono::cli {

// `path`: of the recording. Returns the exit code.
int run_replay(const std::string& path, const Console& console);

}  // namespace unisono::cli
