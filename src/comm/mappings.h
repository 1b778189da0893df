// Reads the kernel's description of this process's memory.
#pragma once

#include <cstdint>
#include <string>

namespace unisono::comm {

// Returns the reason why the pages of [begin, end) cannot be moved to shared memory, such as "it is
// mapped from /data/x" or "it is read-only". Empty if all pages are private, anonymous and
// writable.
std::string why_not_adoptable(std::uintptr_t begin, std::uintptr_t end);

}  // namespace unisono::comm
