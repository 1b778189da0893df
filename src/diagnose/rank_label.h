// The label of a rank's calls.
#pragma once

#include <string>
#include <string_view>

#include "bootstrap/host_memory.h"

namespace unisono::comm {

// Truncates long text. Threads: any thread of the rank.
void write_label(RankLabel& label, std::string_view text) noexcept;
std::string read_label(const RankLabel& label);

}  // namespace unisono::comm
