// The devices that a group can use.
#pragma once

#include <string>
#include <vector>

namespace unisono::device {

// Returns CUDA's devices, in its order, such as "sm_90 with 132 processors". Errors: config.
std::vector<std::string> devices();
// Returns why collectives on device memory are impossible: no driver, no device, no kernels; "" if
// they are possible.
std::string why_no_devices();

}  // namespace unisono::device
