// What the kernel says about this process's memory.
#pragma once

#include <cstdint>
#include <string>

namespace unisono::comm {

// Why the pages of [begin, end) cannot be moved onto shared memory: "it is mapped from /data/x",
// "it is read-only", ... Empty: they are private, anonymous and writable, all of them.
std::string why_not_adoptable(std::uintptr_t begin, std::uintptr_t end);

}  // namespace unisono::comm
