// Reads the kernel's description of this process's memory.
#pragma once

#include <cstdint>
#include <string>

namespace unisono::comm {

// Returns why the pages of [begin, end) cannot be moved to shared memory: "it is mapped from
// /data/x", "it is read-only", ... Empty: all of them are private, anonymous and writable.
std::string why_not_adoptable(std::uintptr_t begin, std::uintptr_t end);

}  // namespace unisono::comm
