// Identifies the host of this process.
#pragma once

#include <string>

namespace unisono {

// One boot of one kernel; empty where it does not say.
std::string boot_id();

// Returns a text that is equal for two processes that can access each other's memory: the machine
// (boot_id(), or its substitute), the network namespace in which they would connect, and the user.
std::string host_identity(const std::string& machine);

// Describes the difference between two of them, for people who see one name for both machines:
// "network namespaces, 1 and 2". An identity may be followed by a name (UNISONO_HOST). Empty: no
// difference.
std::string difference_of_hosts(const std::string& one, const std::string& other);

}  // namespace unisono
