// The time of bare TCP sockets on the loopback device: the limit for everything over them.
#pragma once

#include <cstddef>
#include <vector>

namespace unisono::bench {

struct Flow {
  int socket = -1;
  std::byte* out = nullptr;
  std::byte* in = nullptr;
  std::size_t bytes = 0;  // each way
};

// Sends `bytes` and receives as many, at the same time, over sockets that do not block; pieces of
// `piece` in each call. Where ranks share a CPU, one that can do nothing gives way (`yields`).
// REQUIRES: the other side does the same.
void exchange(std::vector<Flow> flows, std::size_t piece, bool yields = false);

}  // namespace unisono::bench
