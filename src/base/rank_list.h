// Formats rank numbers.
#pragma once

#include <string>
#include <vector>

namespace unisono {

// Returns text such as "0-2,5".
std::string rank_list(std::vector<int> ranks);
// Returns text such as "rank 2" or "ranks 0-2,5".
std::string ranks_text(const std::vector<int>& ranks);
// Returns "rank 3 (1 of its group)", or "rank 3" if the rank has number 3 in the group as well.
std::string member_text(int rank, int world_rank);

}  // namespace unisono
