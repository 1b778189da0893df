// Measures bare TCP sockets on the loopback interface, the limit of every transfer over TCP.
#pragma once

#include <cstddef>
#include <vector>

namespace unisono::bench {

struct Flow {
  int socket = -1;
  std::byte* out = nullptr;
  std::byte* in = nullptr;
  std::size_t bytes = 0;  // bytes in each direction
};

// Sends `bytes` and receives `bytes` at the same time over non-blocking sockets, with `piece` bytes
// per system call. `yields`: a rank that cannot proceed yields its CPU, for ranks that share one.
// REQUIRES: the other side does the same.
void exchange(std::vector<Flow> flows, std::size_t piece, bool yields = false);

}  // namespace unisono::bench
