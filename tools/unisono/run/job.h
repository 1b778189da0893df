// The common settings of the ranks of one job on this host.
#pragma once

#include <string>
#include <vector>

namespace unisono::cli {

inline constexpr int kMostJobRanks = 4096;

// Without its domain.
std::string host_name();

// The variables of a new job, for LaunchOptions::environment; a name alone is taken away.
// `transport`: auto, shm or tcp.
std::vector<std::string> job_environment(int ranks, const std::string& transport);
// The same of ranks on several hosts, the first of which has rank 0: its address_of(). What this
// process has of UNISONO_* goes along.
std::vector<std::string> hosts_environment(int ranks, const std::string& first_host,
                                           const std::string& transport);

}  // namespace unisono::cli
