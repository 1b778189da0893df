// The output of `unisono trace skew`.
#pragma once

#include <string>

#include "cli/console.h"
#include "record/views.h"

namespace unisono::cli {

// `path`: of the recording, for people.
void show_skew(const std::string& path, const Skew& skew, const Console& console);

}  // namespace unisono::cli
