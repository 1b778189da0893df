// The common settings of the ranks of one job on this host.
#pragma once

#include <string>
#include <vector>

namespace unisono::cli {

inline constexpr int kMostJobRanks = 4096;

// Returns the host name without its domain.
std::string host_name();

// Returns the variables of a new job, for LaunchOptions::environment. A name without a value
// removes the variable. `transport`: auto, shm or tcp.
std::vector<std::string> job_environment(int ranks, const std::string& transport);
// Like job_environment(), for ranks on several hosts. `first_host`: address_of() the host of rank
// 0. Includes the UNISONO_* variables of this process.
std::vector<std::string> hosts_environment(int ranks, const std::string& first_host,
                                           const std::string& transport);

}  // namespace unisono::cli
