// On which host this process is.
#pragma once

#include <string>

namespace unisono {

// One boot of one kernel; empty where it does not say.
std::string boot_id();

// What must be equal for two processes to reach each other's memory: the machine (boot_id(), or
// what stands for it), the network namespace, where they would meet, and the user.
std::string host_identity(const std::string& machine);

}  // namespace unisono
