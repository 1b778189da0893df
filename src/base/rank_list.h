// Numbers of ranks as text.
#pragma once

#include <string>
#include <vector>

namespace unisono {

// "0-2,5".
std::string rank_list(std::vector<int> ranks);
// "rank 2", "ranks 0-2,5".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace unisono
