// Examines why a job hangs, just before the launcher stops it.
#pragma once

#include <string>
#include <vector>

#include "top/why.h"

namespace unisono::cli {

// `job`: its name. The advice in the findings is for the time after its processes have ended.
// Empty: no rank waits, or no rank on this host has connected.
std::vector<Finding> look_around(const std::string& job);

}  // namespace unisono::cli
