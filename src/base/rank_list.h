// Numbers of ranks as text.
#pragma once

#include <string>
#include <vector>

namespace unisono {

// "0-2,5".
std::string rank_list(std::vector<int> ranks);
// "rank 2", "ranks 0-2,5".
std::string ranks_text(const std::vector<int>& ranks);
// "rank 3 (1 of its group)", or "rank 3" if rank 3 of the world has that number in the group too.
std::string member_text(int rank, int world_rank);

}  // namespace unisono
