// The devices that a group can use.
#pragma once

#include <string>
#include <vector>

namespace unisono::device {

// Returns a description of each CUDA device, in CUDA's order, such as "sm_90 with 132 processors".
// Errors: config.
std::vector<std::string> devices();
// Returns why collectives on device memory are unavailable (no driver, no device or no kernels), or
// "" if they are available.
std::string why_no_devices();

}  // namespace unisono::device
