// Identifies the host of this process.
#pragma once

#include <string>

namespace unisono {

// Returns an identifier for the current boot of this kernel, or "" if the kernel does not provide
// one.
std::string boot_id();

// Returns a text that is equal for processes that can access each other's memory. It consists of
// the machine (boot_id() or a substitute), the network namespace and the user.
std::string host_identity(const std::string& machine);

// Describes the difference between two identities, such as "network namespaces, 1 and 2", for hosts
// that have the same name. A name (UNISONO_HOST) may follow an identity. Returns "" if they are
// equal.
std::string difference_of_hosts(const std::string& one, const std::string& other);

}  // namespace unisono
