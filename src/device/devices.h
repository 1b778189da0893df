// What there is to make a group of.
#pragma once

#include <string>
#include <vector>

namespace unisono::device {

// What CUDA shows, in its order, such as "sm_90 with 132 processors". Errors: config.
std::vector<std::string> devices();
// Why collectives on device memory are not possible: no driver, no device, no kernels; "" where
// they are.
std::string why_no_devices();

}  // namespace unisono::device
