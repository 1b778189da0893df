// On which host this process is.
#pragma once

#include <string>

namespace unisono {

// One boot of one kernel; empty where it does not say.
std::string boot_id();

// What must be equal for two processes to reach each other's memory: the machine (boot_id(), or
// what stands for it), the network namespace, where they would meet, and the user.
std::string host_identity(const std::string& machine);

// What sets two of them apart, for people who see one name of both machines: "network namespaces,
// 1 and 2". What stands behind them is a name (UNISONO_HOST), if anything. Empty: nothing.
std::string difference_of_hosts(const std::string& one, const std::string& other);

}  // namespace unisono
