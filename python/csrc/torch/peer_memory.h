// Memory that each rank of a host makes for itself and all ranks of a group then map: a pad of
// signals, and a buffer behind it.
//
// Each rank connects to a socket of every other one, whose name it was told, and passes the
// descriptor of its memory there. Nobody has to answer for that, so no thread is needed and no
// order of the ranks.
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

// This rank's own, or a peer's as it is mapped here: the peer may end or free it, and what is
// mapped stays.
class PeerMemory {
 public:
  // New memory of zeros. Throws unisono::Error (resource).
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

// A rank's process, as the kernel knows it.
struct PeerProcess {
  pid_t pid = 0;
  unisono::UniqueFd handle;
  // "was killed by SIGKILL"; empty: it lives.
  std::string end() const;
};

class DescriptorExchange {
 public:
  // Throws unisono::Error (resource).
  DescriptorExchange();
  // To be told to the others.
  const std::string& name() const { return name_; }

  struct Peer {
    unisono::UniqueFd memory;  // none for this rank
    PeerProcess process;
  };
  struct Wait {
    unisono::Deadline deadline;
    std::function<void()> look;  // may throw what ends the wait
    // Throws unisono::Error: timeout, of `for_rank`.
    void a_little(int socket, int for_rank) const;
  };
  // `endpoints`: by rank. Throws unisono::Error: peer_lost, timeout, each with the rank.
  std::vector<Peer> trade(int rank, const std::vector<std::string>& endpoints, int descriptor,
                          const Wait& wait);

 private:
  static void give(int rank, int descriptor, const std::string& endpoint, int to, Peer& peer,
                   const Wait& wait);
  void take(std::vector<Peer>& peers);

  std::string name_;
  unisono::UniqueFd listener_;
  std::vector<unisono::UniqueFd> pending_;  // connected, not heard yet
};

}  // namespace unisono_torch
