// What the ranks of one job on this host have in common.
#pragma once

#include <string>
#include <vector>

namespace unisono::cli {

inline constexpr int kMostJobRanks = 4096;

// Without its domain.
std::string host_name();

// The variables of a new job, for LaunchOptions::environment; a name alone is taken away.
std::vector<std::string> job_environment(int ranks);

}  // namespace unisono::cli
