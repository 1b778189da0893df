// Properties of another rank on this host, as this rank knows them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace unisono::comm {

struct Peer {
  pid_t pid = 0;
  bool same_process = false;
  std::vector<int> cpus;  // its affinity mask at the start
};

struct FdNote {
  int from = -1;
  std::vector<std::byte> note;  // at most 256 bytes
  int fd = -1;                  // owned by the receiver; -1: none
};

struct Death {
  int rank = -1;
  std::string how;  // "killed by SIGKILL", "exited", "closed its connection"
};

}  // namespace unisono::comm
