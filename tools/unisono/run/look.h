// Why a job does not go on, as it is seen just before the launcher stops it.
#pragma once

#include <string>
#include <vector>

#include "top/why.h"

namespace unisono::cli {

// `job`: its name. What to do then is said for a time when its processes are no more. Empty: nobody
// waits, or none of its ranks on this host has connected.
std::vector<Finding> look_around(const std::string& job);

}  // namespace unisono::cli
