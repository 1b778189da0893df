// Memory that each rank of a host creates and all ranks of a group map: a signal pad followed by a
// buffer.
//
// Each rank connects to every other rank's socket, whose name it has received, and sends the
// descriptor of its memory. Nothing has to be answered, so neither a thread nor an order of the
// ranks is needed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "transport/shm/segment.h"

namespace unisono_torch {

// This rank's memory, or a mapping of a peer's memory, which stays valid if the peer ends or frees
// the memory.
class PeerMemory {
 public:
  // Allocates zeroed memory. Throws unisono::Error (resource).
  PeerMemory(std::size_t bytes, std::size_t pad_bytes);
  PeerMemory(unisono::UniqueFd memory, std::size_t bytes, std::size_t pad_bytes);

  std::byte* pad() const { return mapping_.data(); }
  std::byte* buffer() const { return mapping_.data() + pad_room(pad_bytes_); }
  std::size_t bytes() const { return bytes_; }
  std::size_t pad_bytes() const { return pad_bytes_; }
  int descriptor() const { return memory_.get(); }

 private:
  static std::size_t pad_room(std::size_t pad_bytes) {
    return (pad_bytes + 4095) & ~std::size_t{4095};
  }
  static std::size_t room(std::size_t bytes, std::size_t pad_bytes);

  unisono::UniqueFd memory_;
  std::size_t bytes_;
  std::size_t pad_bytes_;
  unisono::shm::Mapping mapping_;
};

// A rank's process, identified by the kernel.
struct PeerProcess {
  pid_t pid = 0;
  unisono::UniqueFd handle;
  // Returns text such as "was killed by SIGKILL", or "" if the process is alive.
  std::string end() const;
};

class DescriptorExchange {
 public:
  // Throws unisono::Error (resource).
  DescriptorExchange();
  // Returns the socket's name, to be sent to the other ranks.
  const std::string& name() const { return name_; }

  struct Peer {
    unisono::UniqueFd memory;  // empty for this rank
    PeerProcess process;
  };
  struct Wait {
    unisono::Deadline deadline;
    std::function<void()> look;  // may throw to end the wait
    // Throws unisono::Error (timeout), which names `for_rank`.
    void a_little(int socket, int for_rank) const;
  };
  // `endpoints`: by rank. Throws unisono::Error (peer_lost or timeout) with the rank.
  std::vector<Peer> trade(int rank, const std::vector<std::string>& endpoints, int descriptor,
                          const Wait& wait);

 private:
  static void give(int rank, int descriptor, const std::string& endpoint, int to, Peer& peer,
                   const Wait& wait);
  void take(std::vector<Peer>& peers);

  std::string name_;
  unisono::UniqueFd listener_;
  std::vector<unisono::UniqueFd> pending_;  // connected, but nothing received yet
};

}  // namespace unisono_torch
